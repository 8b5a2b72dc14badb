#include "collector-server/export/flat_buffer.h"

#include <string.h>

enum { WORD = 4, WIDEST = 8 };

size_t sj_flat_table(sj_byte_buffer *buffer, const sj_flat_field *fields, size_t count,
                     size_t *places)
{
    const size_t vtable_bytes = 2 * (2 + count);
    size_t offsets[SJ_FLAT_MAX_FIELDS] = {0};
    size_t table_bytes = WORD;
    for (size_t i = 0; i < count; ++i) {
        if (fields[i].bytes != 0) {
            table_bytes += (fields[i].bytes - table_bytes % fields[i].bytes) % fields[i].bytes;
            offsets[i] = table_bytes;
            table_bytes += fields[i].bytes;
        }
    }
    /* The table follows the vtable directly. Pad before the vtable, so that the table is aligned
     * for its widest field. */
    while (!buffer->failed && (buffer->size + vtable_bytes) % WIDEST != 0) {
        (void)sj_byte_buffer_add(buffer, 1);
    }
    sj_byte_buffer_put_number(buffer, vtable_bytes, 2);
    sj_byte_buffer_put_number(buffer, table_bytes, 2);
    for (size_t i = 0; i < count; ++i) {
        sj_byte_buffer_put_number(buffer, offsets[i], 2);
    }
    const size_t table = buffer->size;
    (void)sj_byte_buffer_add(buffer, table_bytes);
    sj_byte_buffer_set(buffer, table, vtable_bytes, WORD);
    for (size_t i = 0; i < count; ++i) {
        sj_byte_buffer_set(buffer, table + offsets[i], fields[i].value, fields[i].bytes);
        if (places != NULL) {
            places[i] = table + offsets[i];
        }
    }
    return table;
}

void sj_flat_point(sj_byte_buffer *buffer, size_t place, size_t target)
{
    sj_byte_buffer_set(buffer, place, target - place, WORD);
}

size_t sj_flat_text(sj_byte_buffer *buffer, const char *text)
{
    sj_byte_buffer_align(buffer, WORD);
    const size_t place = buffer->size;
    sj_byte_buffer_put_number(buffer, strlen(text), WORD);
    sj_byte_buffer_put(buffer, text, strlen(text) + 1);
    return place;
}

size_t sj_flat_vector(sj_byte_buffer *buffer, size_t count, size_t element_bytes, size_t alignment)
{
    while (!buffer->failed && (buffer->size + WORD) % alignment != 0) {
        (void)sj_byte_buffer_add(buffer, 1);
    }
    const size_t place = buffer->size;
    sj_byte_buffer_put_number(buffer, count, WORD);
    (void)sj_byte_buffer_add(buffer, count * element_bytes);
    return place;
}
