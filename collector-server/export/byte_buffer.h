/* Bytes that grow, little-endian: what binary formats are put together in. A failure is kept until
 * it is asked for. One thread. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_BYTE_BUFFER_H
#define SJ_COLLECTOR_SERVER_EXPORT_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed is empty. */
typedef struct sj_byte_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; /* no memory: what is in it cannot be used */
} sj_byte_buffer;

void sj_byte_buffer_deinit(sj_byte_buffer *buffer); /* safe on a zeroed one */
void sj_byte_buffer_clear(sj_byte_buffer *buffer);  /* keeps the memory */

/* sj_byte_buffer_add appends zeroed bytes and returns their place; NULL: there is no memory. */
uint8_t *sj_byte_buffer_add(sj_byte_buffer *buffer, size_t bytes);

/* sj_byte_buffer_align appends zeros until the size is a multiple of `bytes`. */
void sj_byte_buffer_align(sj_byte_buffer *buffer, size_t bytes);

void sj_byte_buffer_put(sj_byte_buffer *buffer, const void *data, size_t size);

/* sj_byte_buffer_put_number appends the lowest bytes of a number, sj_byte_buffer_set overwrites
 * those at `at`; 8 at most. */
void sj_byte_buffer_put_number(sj_byte_buffer *buffer, uint64_t value, unsigned bytes);
void sj_byte_buffer_set(sj_byte_buffer *buffer, size_t at, uint64_t value, unsigned bytes);

/* sj_byte_buffer_put_varint appends an unsigned LEB128 number, _put_zigzag a signed one. */
void sj_byte_buffer_put_varint(sj_byte_buffer *buffer, uint64_t value);
void sj_byte_buffer_put_zigzag(sj_byte_buffer *buffer, int64_t value);

#endif
