/* Values as ClickHouse has them in its binary formats: one after the other, little-endian, texts
 * with their length as a varint before them. Growing memory; a failure is kept until it is asked
 * for. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_ROW_BUFFER_H
#define SJ_COLLECTOR_SERVER_FORWARD_ROW_BUFFER_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

typedef struct sj_row_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; /* no memory: what is in it cannot be used */
} sj_row_buffer;

void sj_row_buffer_deinit(sj_row_buffer *buffer); /* safe on a zeroed one */
void sj_row_buffer_clear(sj_row_buffer *buffer);  /* keeps the memory */

/* sj_row_put_number writes the lowest bytes, 8 at most. The slow form makes room. */
void sj_row_put_number_slow(sj_row_buffer *buffer, uint64_t value, unsigned bytes);
static inline void sj_row_put_number(sj_row_buffer *buffer, uint64_t value, unsigned bytes)
{
    if (buffer->failed || buffer->capacity - buffer->size < sizeof(value)) {
        sj_row_put_number_slow(buffer, value, bytes);
        return;
    }
    const uint64_t little = htole64(value);
    memcpy(buffer->bytes + buffer->size, &little,
           sizeof(little)); /* what is beyond is overwritten */
    buffer->size += bytes;
}
void sj_row_put_varint(sj_row_buffer *buffer, uint64_t value);
void sj_row_put_text(sj_row_buffer *buffer, sj_slice text);
/* sj_row_put_fixed fills up with zeros, or cuts, to `bytes`. */
void sj_row_put_fixed(sj_row_buffer *buffer, sj_slice value, size_t bytes);
/* sj_row_put_hex writes two digits for each byte, for `bytes` bytes. */
void sj_row_put_hex(sj_row_buffer *buffer, sj_slice value, size_t bytes);

#endif
