#include "proto/block/block_internal.h"

#include <stdlib.h>

sj_status sj_block_buffer_reserve(sj_block_buffer *buffer, size_t size)
{
    if (size <= buffer->capacity) {
        return SJ_OK;
    }
    uint8_t *data = malloc(size);
    if (data == NULL) {
        return SJ_ENOMEM;
    }
    free(buffer->data);
    buffer->data = data;
    buffer->capacity = size;
    return SJ_OK;
}

void sj_block_buffer_deinit(sj_block_buffer *buffer)
{
    free(buffer->data);
    *buffer = (sj_block_buffer){0};
}
