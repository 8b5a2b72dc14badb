#include "proto/base/byte_buffer.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_byte_buffer_deinit(sj_byte_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (sj_byte_buffer){0};
}

void sj_byte_buffer_clear(sj_byte_buffer *buffer)
{
    buffer->size = 0;
}

uint8_t *sj_byte_buffer_add(sj_byte_buffer *buffer, size_t bytes)
{
    if (buffer->failed ||
        sj_array_reserve(&buffer->bytes, &buffer->capacity, buffer->size, bytes, 1) != SJ_OK) {
        buffer->failed = true;
        return NULL;
    }
    uint8_t *place = buffer->bytes + buffer->size;
    if (bytes != 0) {
        memset(place, 0, bytes);
    }
    buffer->size += bytes;
    return place;
}

void sj_byte_buffer_align(sj_byte_buffer *buffer, size_t bytes)
{
    (void)sj_byte_buffer_add(buffer, (bytes - buffer->size % bytes) % bytes);
}

void sj_byte_buffer_put(sj_byte_buffer *buffer, const void *data, size_t size)
{
    uint8_t *place = size != 0 ? sj_byte_buffer_add(buffer, size) : NULL;
    if (place != NULL) {
        memcpy(place, data, size);
    }
}

void sj_byte_buffer_put_number_slow(sj_byte_buffer *buffer, uint64_t value, unsigned bytes)
{
    uint8_t *place = sj_byte_buffer_add(buffer, bytes);
    for (unsigned i = 0; place != NULL && i < bytes; ++i) {
        place[i] = (uint8_t)(value >> (8 * i));
    }
}

void sj_byte_buffer_set(sj_byte_buffer *buffer, size_t at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; !buffer->failed && i < bytes; ++i) {
        buffer->bytes[at + i] = (uint8_t)(value >> (8 * i));
    }
}

void sj_byte_buffer_put_varint(sj_byte_buffer *buffer, uint64_t value)
{
    enum { MORE = 0x80, BITS = 7 };
    for (; value >= MORE; value >>= BITS) {
        sj_byte_buffer_put_number(buffer, (value & (MORE - 1)) | MORE, 1);
    }
    sj_byte_buffer_put_number(buffer, value, 1);
}

void sj_byte_buffer_put_zigzag(sj_byte_buffer *buffer, int64_t value)
{
    sj_byte_buffer_put_varint(buffer, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}
