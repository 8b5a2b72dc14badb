/* Writes a protobuf message field by field, for messages that do not fit into memory. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_MESSAGE_STREAM_H
#define SJ_COLLECTOR_SERVER_EXPORT_MESSAGE_STREAM_H

#include "proto/base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <stdio.h>

/* Initialize it with `{.output = file}`. The stream holds the fields of one outer message. */
typedef struct sj_message_stream {
    FILE *output;
    uint8_t *bytes; /* owned work buffer */
    size_t capacity;
} sj_message_stream;

/* Writes `message` as the field `number` of the outer message; `number` is at most 15. Fails with
 * SJ_ENOMEM. The caller checks `output` for write errors. */
SJ_MUST_CHECK sj_status sj_message_stream_field(sj_message_stream *stream, unsigned number,
                                                const ProtobufCMessage *message);

/* Writes the fields of `message` as fields of the outer message, which has the same type. If
 * several parts have the same repeated field, a reader gets the values of all parts. Fails with
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_message_stream_part(sj_message_stream *stream,
                                               const ProtobufCMessage *message);

void sj_message_stream_deinit(sj_message_stream *stream);

#endif
