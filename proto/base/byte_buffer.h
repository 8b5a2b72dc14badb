/* A growing buffer in which binary formats are assembled, little-endian. If memory runs out,
 * `failed` is set and stays set, and later appends do nothing. So the caller checks it once, at the
 * end. Not thread-safe. */
#ifndef SJ_PROTO_BASE_BYTE_BUFFER_H
#define SJ_PROTO_BASE_BYTE_BUFFER_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A zeroed buffer is empty. */
typedef struct sj_byte_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; /* memory ran out: the content is incomplete */
} sj_byte_buffer;

void sj_byte_buffer_deinit(sj_byte_buffer *buffer); /* A zeroed buffer is allowed */
void sj_byte_buffer_clear(sj_byte_buffer *buffer);  /* Keeps the memory and `failed` */

/* Appends `bytes` zeroed bytes and returns their address, or NULL if out of memory. The address is
 * valid until the next append. */
uint8_t *sj_byte_buffer_add(sj_byte_buffer *buffer, size_t bytes);

/* Appends zeros until the size is a multiple of `bytes`. */
void sj_byte_buffer_align(sj_byte_buffer *buffer, size_t bytes);

void sj_byte_buffer_put(sj_byte_buffer *buffer, const void *data, size_t size);

/* sj_byte_buffer_put_number appends the lowest `bytes` bytes of a number (8 at most).
 * sj_byte_buffer_set overwrites `bytes` bytes at offset `at`, which must have been appended before.
 * sj_byte_buffer_put_number_slow is the part of put_number that grows the buffer. */
void sj_byte_buffer_put_number_slow(sj_byte_buffer *buffer, uint64_t value, unsigned bytes);
static inline void sj_byte_buffer_put_number(sj_byte_buffer *buffer, uint64_t value, unsigned bytes)
{
    if (buffer->failed || buffer->capacity - buffer->size < sizeof(value)) {
        sj_byte_buffer_put_number_slow(buffer, value, bytes);
        return;
    }
    const uint64_t little = htole64(value);
    memcpy(buffer->bytes + buffer->size, &little,
           sizeof(little)); /* writes all 8 bytes; the next append overwrites the surplus */
    buffer->size += bytes;
}
void sj_byte_buffer_set(sj_byte_buffer *buffer, size_t at, uint64_t value, unsigned bytes);

/* sj_byte_buffer_put_varint appends an unsigned LEB128 number. sj_byte_buffer_put_zigzag appends a
 * signed number in zigzag coding. */
void sj_byte_buffer_put_varint(sj_byte_buffer *buffer, uint64_t value);
void sj_byte_buffer_put_zigzag(sj_byte_buffer *buffer, int64_t value);

#endif
