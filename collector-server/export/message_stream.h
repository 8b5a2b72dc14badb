/* Writes a protobuf message whose fields are too many to hold: field by field. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_MESSAGE_STREAM_H
#define SJ_COLLECTOR_SERVER_EXPORT_MESSAGE_STREAM_H

#include "proto/base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <stdio.h>

/* A zeroed stream with an output is ready. */
typedef struct sj_message_stream {
    FILE *output;
    uint8_t *bytes; /* owned: reused for each message */
    size_t capacity;
} sj_message_stream;

/* Writes `message` as the field `number` of the outer message; `number` is at most 15. Errors:
 * SJ_ENOMEM. A failed write shows in ferror(). */
SJ_MUST_CHECK sj_status sj_message_stream_field(sj_message_stream *stream, unsigned number,
                                                const ProtobufCMessage *message);

/* Writes the fields of `message` as fields of the outer message, whose type is the same. Readers
 * append the values of repeated fields. Errors: as sj_message_stream_field. */
SJ_MUST_CHECK sj_status sj_message_stream_part(sj_message_stream *stream,
                                               const ProtobufCMessage *message);

void sj_message_stream_deinit(sj_message_stream *stream);

#endif
