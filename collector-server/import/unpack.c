#include "collector-server/import/unpack.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { GZIP_OR_ZLIB = 32 + MAX_WBITS, FIRST_BYTES = 256 * 1024 };

bool sj_unpack_is_gzip(sj_slice packed)
{
    return packed.size > 2 && packed.data[0] == 0x1f && packed.data[1] == 0x8b;
}

static void give_input(z_stream *stream, sj_slice *left)
{
    if (stream->avail_in == 0) {
        const size_t count = left->size < UINT_MAX ? left->size : UINT_MAX;
        stream->next_in = (uint8_t *)(uintptr_t)left->data;
        stream->avail_in = (unsigned)count;
        left->data += count;
        left->size -= count;
    }
}

/* Makes space for more bytes after the first `count`. */
static sj_status grow(uint8_t **bytes, size_t *capacity, size_t count, size_t most)
{
    if (count < *capacity) {
        return SJ_OK;
    }
    if (*capacity > most) {
        return SJ_ELIMIT;
    }
    const size_t larger = *capacity == 0 ? FIRST_BYTES : 2 * *capacity;
    uint8_t *made = realloc(*bytes, larger);
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    *bytes = made;
    *capacity = larger;
    return SJ_OK;
}

static sj_status inflate_all(z_stream *stream, sj_slice packed, size_t most, uint8_t **bytes,
                             size_t *size)
{
    size_t capacity = 0;
    for (;;) {
        SJ_TRY(grow(bytes, &capacity, *size, most));
        give_input(stream, &packed);
        const size_t space = capacity - *size < UINT_MAX ? capacity - *size : UINT_MAX;
        stream->next_out = *bytes + *size;
        stream->avail_out = (unsigned)space;
        const int result = inflate(stream, Z_NO_FLUSH);
        *size += space - stream->avail_out;
        if (*size > most) {
            return SJ_ELIMIT;
        }
        if (result == Z_STREAM_END && stream->avail_in == 0 && packed.size == 0) {
            return SJ_OK;
        }
        if (result == Z_STREAM_END) { /* gzip data may have several members */
            if (inflateReset(stream) != Z_OK) {
                return SJ_ECORRUPT;
            }
        } else if (result != Z_OK) {
            return result == Z_MEM_ERROR ? SJ_ENOMEM : SJ_ECORRUPT;
        }
    }
}

sj_status sj_unpack(sj_slice packed, size_t most, uint8_t **bytes, size_t *size)
{
    z_stream stream = {0};
    *bytes = NULL;
    *size = 0;
    if (inflateInit2(&stream, GZIP_OR_ZLIB) != Z_OK) {
        return SJ_ENOMEM;
    }
    const sj_status status = inflate_all(&stream, packed, most, bytes, size);
    inflateEnd(&stream);
    if (status != SJ_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

size_t sj_unpack_head(sj_slice packed, uint8_t *bytes, size_t capacity)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, GZIP_OR_ZLIB) != Z_OK) {
        return 0;
    }
    give_input(&stream, &packed);
    stream.next_out = bytes;
    stream.avail_out = (unsigned)capacity;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const size_t size = capacity - stream.avail_out;
    inflateEnd(&stream);
    return result == Z_OK || result == Z_STREAM_END ? size : 0;
}
