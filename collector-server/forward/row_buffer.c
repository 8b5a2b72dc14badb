#include "collector-server/forward/row_buffer.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_row_buffer_deinit(sj_row_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (sj_row_buffer){0};
}

void sj_row_buffer_clear(sj_row_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

/* reserve makes room; NULL when there is no memory. */
static uint8_t *reserve(sj_row_buffer *buffer, size_t bytes)
{
    if (buffer->failed ||
        sj_array_reserve(&buffer->bytes, &buffer->capacity, buffer->size, bytes, 1) != SJ_OK) {
        buffer->failed = true;
        return NULL;
    }
    uint8_t *place = buffer->bytes + buffer->size;
    buffer->size += bytes;
    return place;
}

void sj_row_put_number_slow(sj_row_buffer *buffer, uint64_t value, unsigned bytes)
{
    uint8_t *place = reserve(buffer, bytes);
    for (unsigned i = 0; place != NULL && i < bytes; ++i) {
        place[i] = (uint8_t)(value >> (8 * i));
    }
}

void sj_row_put_varint(sj_row_buffer *buffer, uint64_t value)
{
    enum { MORE = 0x80, BITS = 7 };
    for (; value >= MORE; value >>= BITS) {
        sj_row_put_number(buffer, (value & (MORE - 1)) | MORE, 1);
    }
    sj_row_put_number(buffer, value, 1);
}

void sj_row_put_fixed(sj_row_buffer *buffer, sj_slice value, size_t bytes)
{
    uint8_t *place = reserve(buffer, bytes);
    const size_t taken = value.size < bytes ? value.size : bytes;
    if (place != NULL) {
        memset(place, 0, bytes);
        if (taken != 0) {
            memcpy(place, value.data, taken);
        }
    }
}

void sj_row_put_text(sj_row_buffer *buffer, sj_slice text)
{
    sj_row_put_varint(buffer, text.size);
    sj_row_put_fixed(buffer, text, text.size);
}

void sj_row_put_hex(sj_row_buffer *buffer, sj_slice value, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *place = reserve(buffer, 2 * bytes);
    for (size_t i = 0; place != NULL && i < bytes; ++i) {
        const uint8_t byte = i < value.size ? value.data[i] : 0;
        place[2 * i] = (uint8_t)digits[byte >> 4];
        place[2 * i + 1] = (uint8_t)digits[byte & 15];
    }
}
