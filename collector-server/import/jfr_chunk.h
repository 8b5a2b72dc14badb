/* A chunk of a recording of JDK Flight Recorder: its classes, which say how values are stored, and
 * its constants, which values refer to. A recording is a list of chunks. The layout is that of
 * jdk.jfr.internal.consumer in the JDK. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_JFR_CHUNK_H
#define SJ_COLLECTOR_SERVER_IMPORT_JFR_CHUNK_H

#include "proto/base/cursor.h"
#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_JFR_HEAD_BYTES = 68, SJ_JFR_SIZE_AT = 8, SJ_JFR_TEXT_BYTES = 16 * 1024 };

typedef struct sj_jfr_field {
    sj_slice name;
    uint32_t type;    /* number of its class */
    bool is_constant; /* the value is the number of a constant */
    bool is_array;
} sj_jfr_field;

typedef struct sj_jfr_class {
    sj_slice name;
    uint32_t number;
    sj_jfr_field *fields;
    size_t field_count, field_capacity;
} sj_jfr_class;

/* Zeroed: no chunk. */
typedef struct sj_jfr_chunk {
    sj_slice bytes; /* borrowed; the chunk from its head on */
    sj_slice *texts;
    size_t text_count, text_capacity;
    sj_jfr_class *classes;
    size_t class_count, class_capacity;
    sj_hash_map by_number; /* number of a class -> its index */
    sj_hash_map constants; /* number of a constant, and of its class -> its offset */
    size_t bad_at;         /* offset of what is wrong, after SJ_ECORRUPT */
    const char *problem;   /* the reason of a refusal */
} sj_jfr_chunk;

/* Reads the classes and finds the constants of a chunk. Borrows `bytes`. Fails with SJ_ECORRUPT and
 * sets bad_at and problem; with SJ_ENOMEM or SJ_ELIMIT. Deinit the chunk even if this fails. */
SJ_MUST_CHECK sj_status sj_jfr_chunk_read(sj_jfr_chunk *chunk, sj_slice bytes);
void sj_jfr_chunk_deinit(sj_jfr_chunk *chunk);

/* Returns the class with this name, or NULL. */
const sj_jfr_class *sj_jfr_chunk_find(const sj_jfr_chunk *chunk, const char *name);

/* Reads an unsigned number. A number has at most 9 bytes, the last of which has 8 bits. */
uint64_t sj_jfr_number(sj_reader *reader);

/* Moves a reader from the begin of a value of the class `type` to its field `name`, and returns the
 * field. Returns NULL if the class has no such field, or if the value is damaged. */
const sj_jfr_field *sj_jfr_field_find(sj_jfr_chunk *chunk, uint32_t type, const char *name,
                                      sj_reader *reader);

/* Moves a reader behind the value of a field. Sets `bad` of the reader if it is damaged. */
void sj_jfr_field_skip(sj_jfr_chunk *chunk, const sj_jfr_field *field, sj_reader *reader);

/* Sets a reader to the value that the reader `at` has for a field: the value itself, or the
 * constant that it names. Returns false if the constant does not exist, or if the value is damaged.
 */
bool sj_jfr_field_value(const sj_jfr_chunk *chunk, const sj_jfr_field *field, sj_reader at,
                        sj_reader *value);

/* Follows the fields `names`, separated by spaces, from a value of the class `type`. Writes the
 * text of the last one, "" if there is none. Cuts a text of more than SJ_JFR_TEXT_BYTES. */
void sj_jfr_text_find(sj_jfr_chunk *chunk, uint32_t type, sj_reader value, const char *names,
                      char text[SJ_JFR_TEXT_BYTES]);

#endif
