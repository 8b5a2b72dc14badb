/* Bytes that grow, little-endian: what binary formats are put together in. A failure is kept until
 * it is asked for. One thread. */
#ifndef SJ_PROTO_BASE_BYTE_BUFFER_H
#define SJ_PROTO_BASE_BYTE_BUFFER_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Zeroed is empty. */
typedef struct sj_byte_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; /* no memory: what is in it cannot be used */
} sj_byte_buffer;

void sj_byte_buffer_deinit(sj_byte_buffer *buffer); /* safe on a zeroed one */
void sj_byte_buffer_clear(sj_byte_buffer *buffer);  /* keeps the memory, and a failure */

/* sj_byte_buffer_add appends zeroed bytes and returns their place; NULL: there is no memory. */
uint8_t *sj_byte_buffer_add(sj_byte_buffer *buffer, size_t bytes);

/* sj_byte_buffer_align appends zeros until the size is a multiple of `bytes`. */
void sj_byte_buffer_align(sj_byte_buffer *buffer, size_t bytes);

void sj_byte_buffer_put(sj_byte_buffer *buffer, const void *data, size_t size);

/* sj_byte_buffer_put_number appends the lowest bytes of a number, sj_byte_buffer_set overwrites
 * those at `at`; 8 at most. The slow form makes room. */
void sj_byte_buffer_put_number_slow(sj_byte_buffer *buffer, uint64_t value, unsigned bytes);
static inline void sj_byte_buffer_put_number(sj_byte_buffer *buffer, uint64_t value, unsigned bytes)
{
    if (buffer->failed || buffer->capacity - buffer->size < sizeof(value)) {
        sj_byte_buffer_put_number_slow(buffer, value, bytes);
        return;
    }
    const uint64_t little = htole64(value);
    memcpy(buffer->bytes + buffer->size, &little,
           sizeof(little)); /* what is beyond is overwritten */
    buffer->size += bytes;
}
void sj_byte_buffer_set(sj_byte_buffer *buffer, size_t at, uint64_t value, unsigned bytes);

/* sj_byte_buffer_put_varint appends an unsigned LEB128 number, _put_zigzag a signed one. */
void sj_byte_buffer_put_varint(sj_byte_buffer *buffer, uint64_t value);
void sj_byte_buffer_put_zigzag(sj_byte_buffer *buffer, int64_t value);

#endif
