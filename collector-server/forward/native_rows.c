#include "collector-server/forward/native_rows.h"

enum { BUFFERS = 4 + 2 * SJ_NATIVE_COLUMNS };

/* Writes pointers to all buffers of `rows` to `buffers`. */
static void list(const sj_native_rows *rows, const sj_byte_buffer *buffers[BUFFERS])
{
    size_t count = 0;
    buffers[count++] = &rows->owners;
    buffers[count++] = &rows->versions;
    buffers[count++] = &rows->days;
    buffers[count++] = &rows->counts;
    for (size_t i = 0; i < SJ_NATIVE_COLUMNS; i++) {
        buffers[count++] = &rows->columns[i].data;
        buffers[count++] = &rows->columns[i].extra;
    }
}

void sj_native_rows_deinit(sj_native_rows *rows)
{
    const sj_byte_buffer *buffers[BUFFERS];
    list(rows, buffers);
    for (size_t i = 0; i < BUFFERS; i++) {
        sj_byte_buffer_deinit((sj_byte_buffer *)buffers[i]);
    }
}

void sj_native_rows_clear(sj_native_rows *rows)
{
    const sj_byte_buffer *buffers[BUFFERS];
    list(rows, buffers);
    for (size_t i = 0; i < BUFFERS; i++) {
        sj_byte_buffer *buffer = (sj_byte_buffer *)buffers[i];
        if (buffer->failed) {
            sj_byte_buffer_deinit(buffer);
        }
        sj_byte_buffer_clear(buffer);
    }
    rows->rows = rows->elements = 0;
}

size_t sj_native_rows_bytes(const sj_native_rows *rows)
{
    const sj_byte_buffer *buffers[BUFFERS];
    size_t sum = 0;
    list(rows, buffers);
    for (size_t i = 0; i < BUFFERS; i++) {
        sum += buffers[i]->size;
    }
    return sum;
}

bool sj_native_rows_failed(const sj_native_rows *rows)
{
    const sj_byte_buffer *buffers[BUFFERS];
    list(rows, buffers);
    for (size_t i = 0; i < BUFFERS; i++) {
        if (buffers[i]->failed) {
            return true;
        }
    }
    return false;
}
