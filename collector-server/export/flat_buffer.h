/* Flatbuffers, written forwards: what Arrow's metadata is made of. A table is written with the
 * places of its references, which are pointed to what is written behind it. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_FLAT_BUFFER_H
#define SJ_COLLECTOR_SERVER_EXPORT_FLAT_BUFFER_H

#include "proto/base/byte_buffer.h"

enum { SJ_FLAT_MAX_FIELDS = 8 };

/* A field of a table, in the order of the schema: 1, 2, 4 or 8 bytes; 0: it is absent. */
typedef struct sj_flat_field {
    unsigned bytes;
    uint64_t value;
} sj_flat_field;

/* A reference, whose value sj_flat_point sets. */
#define SJ_FLAT_REFERENCE ((sj_flat_field){4, 0})

/* sj_flat_table writes a table of up to SJ_FLAT_MAX_FIELDS fields and returns its place; `places`
 * (may be NULL) becomes those of the fields. */
size_t sj_flat_table(sj_byte_buffer *buffer, const sj_flat_field *fields, size_t count,
                     size_t *places);

/* sj_flat_point makes the reference at `place` lead to what was written at `target`, behind it. */
void sj_flat_point(sj_byte_buffer *buffer, size_t place, size_t target);

/* sj_flat_text writes a string, sj_flat_vector the length of a vector and room for its elements,
 * which begin 4 bytes behind the place that it returns, aligned to `alignment`. */
size_t sj_flat_text(sj_byte_buffer *buffer, const char *text);
size_t sj_flat_vector(sj_byte_buffer *buffer, size_t count, size_t element_bytes, size_t alignment);

#endif
