#include "collector-server/forward/row_values.h"

void sj_row_put_fixed(sj_byte_buffer *buffer, sj_slice value, size_t bytes)
{
    uint8_t *place = sj_byte_buffer_add(buffer, bytes);
    const size_t taken = value.size < bytes ? value.size : bytes;
    if (place != NULL && taken != 0) {
        memcpy(place, value.data, taken);
    }
}

void sj_row_put_text(sj_byte_buffer *buffer, sj_slice text)
{
    sj_byte_buffer_put_varint(buffer, text.size);
    sj_byte_buffer_put(buffer, text.data, text.size);
}

void sj_row_put_hex(sj_byte_buffer *buffer, sj_slice value, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *place = sj_byte_buffer_add(buffer, 2 * bytes);
    for (size_t i = 0; place != NULL && i < bytes; ++i) {
        const uint8_t byte = i < value.size ? value.data[i] : 0;
        place[2 * i] = (uint8_t)digits[byte >> 4];
        place[2 * i + 1] = (uint8_t)digits[byte & 15];
    }
}
