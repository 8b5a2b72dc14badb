/* The bytes of a file that is imported, read once from its start to its end. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_SOURCE_H
#define SJ_COLLECTOR_SERVER_IMPORT_SOURCE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SJ_SOURCE_END = -1, SJ_SOURCE_BYTES = 64 * 1024 };

typedef struct sj_source {
    FILE *file;       /* borrowed */
    const char *path; /* borrowed; for messages */
    sj_error *error;  /* borrowed */
    uint64_t offset;  /* of `bytes` in the file */
    uint64_t hash[2]; /* hash of all bytes before `bytes` */
    size_t at, size;
    uint8_t bytes[SJ_SOURCE_BYTES];
} sj_source;

/* Starts to read a file. Borrows all arguments. */
void sj_source_init(sj_source *source, FILE *file, const char *path, sj_error *error);

/* Returns the next byte without consuming it, or SJ_SOURCE_END. A read error ends the file;
 * sj_source_end reports it. */
int sj_source_peek_slow(sj_source *source);
static inline int sj_source_peek(sj_source *source)
{
    return source->at < source->size ? source->bytes[source->at] : sj_source_peek_slow(source);
}

/* Consumes the next byte and returns it, or SJ_SOURCE_END. */
static inline int sj_source_get(sj_source *source)
{
    const int byte = sj_source_peek(source);
    source->at += byte != SJ_SOURCE_END ? 1 : 0;
    return byte;
}

/* Returns the offset of the next byte in the file. */
static inline uint64_t sj_source_offset(const sj_source *source)
{
    return source->offset + source->at;
}

/* Returns the first bytes of the file, up to SJ_SOURCE_BYTES. Call it before anything is read. */
sj_slice sj_source_head(sj_source *source);

/* Reads a line without its end, and adds a NUL byte. `*is_line` is false if the file has ended.
 * Returns SJ_ELIMIT if the line and the NUL byte need more than `capacity` bytes. */
SJ_MUST_CHECK sj_status sj_source_line(sj_source *source, char *line, size_t capacity, size_t *size,
                                       bool *is_line);

/* Reads to the end of the file. Sets a session id that depends on all bytes of the file and on
 * `format`. Returns SJ_EIO if the file could not be read. */
SJ_MUST_CHECK sj_status sj_source_end(sj_source *source, const char *format,
                                      sj_session_id *session);

/* Writes the message "FILE, byte N: MESSAGE" to the source's error. Returns `status`. */
__attribute__((format(printf, 4, 5))) sj_status
sj_source_fail(const sj_source *source, sj_status status, uint64_t offset, const char *format, ...);

#endif
