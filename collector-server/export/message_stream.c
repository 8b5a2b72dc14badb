#include "collector-server/export/message_stream.h"

#include "proto/base/array.h"

#include <stdlib.h>

enum { LENGTH_DELIMITED = 2, TAG_TYPE_BITS = 3, VARINT_BITS = 7 };

sj_status sj_message_stream_part(sj_message_stream *stream, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    SJ_TRY(sj_array_reserve(&stream->bytes, &stream->capacity, 0, size, 1));
    protobuf_c_message_pack(message, stream->bytes);
    fwrite(stream->bytes, 1, size, stream->output);
    return SJ_OK;
}

sj_status sj_message_stream_field(sj_message_stream *stream, unsigned number,
                                  const ProtobufCMessage *message)
{
    size_t remaining_size = protobuf_c_message_get_packed_size(message);
    fputc((int)(number << TAG_TYPE_BITS | LENGTH_DELIMITED), stream->output);
    while (remaining_size >> VARINT_BITS != 0) {
        fputc((int)(remaining_size & 0x7f) | 0x80, stream->output);
        remaining_size >>= VARINT_BITS;
    }
    fputc((int)remaining_size, stream->output);
    return sj_message_stream_part(stream, message);
}

void sj_message_stream_deinit(sj_message_stream *stream)
{
    free(stream->bytes);
    *stream = (sj_message_stream){0};
}
