#include "agent/runtimes/mono/source_lines.h"

#include "agent/runtimes/mono/assembly.h"

#include <stdlib.h>
#include <zlib.h>

/* RATIO_MAX is the maximum compression ratio of deflate. */
enum { UNPACKED_MAX_BYTES = 256 * 1024 * 1024, RATIO_MAX = 1032 };

/* Decompresses deflate data. Returns SJ_ECORRUPT unless the result has exactly `size` bytes. */
static sj_status unpack(sj_slice packed, uint8_t *bytes, uint32_t size)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed.data,
                       .avail_in = (uInt)packed.size,
                       .next_out = bytes,
                       .avail_out = size};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return SJ_ENOMEM;
    }
    const int result = inflate(&stream, Z_FINISH);
    const bool is_whole = result == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_embedded_pdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink,
                               void *context)
{
    uint32_t size = 0;
    const sj_slice packed = sj_assembly_embedded_pdb(file, &size);
    if (packed.size == 0) {
        return SJ_ENOTFOUND;
    }
    if (size == 0 || size > UNPACKED_MAX_BYTES || packed.size > UNPACKED_MAX_BYTES ||
        size / RATIO_MAX > packed.size) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = malloc(size);
    sj_status status = bytes != NULL ? unpack(packed, bytes, size) : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_portable_pdb_read((sj_slice){.data = bytes, .size = size}, id, sink, context);
    }
    free(bytes);
    return status;
}
