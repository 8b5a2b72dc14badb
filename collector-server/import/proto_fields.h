/* Reads the fields of protobuf messages whose bytes are in memory
 * (https://protobuf.dev/programming-guides/encoding). Does not allocate. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_PROTO_FIELDS_H
#define SJ_COLLECTOR_SERVER_IMPORT_PROTO_FIELDS_H

#include "proto/base/cursor.h"

typedef struct sj_proto_field {
    uint32_t number;
    bool is_bytes;  /* a message, a text or packed numbers: `bytes`, else `value` */
    uint64_t value; /* the number, if the field is not bytes */
    sj_slice bytes; /* borrowed */
} sj_proto_field;

/* Reads the next field. Returns false at the end of the message, and if it is damaged; then the
 * reader is bad. */
bool sj_proto_next(sj_reader *message, sj_proto_field *field);

static inline sj_reader sj_proto_message(sj_slice bytes)
{
    return sj_reader_of(bytes.data, bytes.size);
}

/* Writes the fields that are numbers: field n to values[n], for n < count. Other fields are
 * skipped. Returns false if the message is damaged. */
bool sj_proto_numbers(sj_slice message, uint64_t *values, size_t count);

/* Writes the last text field of that number to `*text`, which is empty if there is none. Returns
 * false if the message is damaged. */
bool sj_proto_bytes(sj_slice message, uint32_t number, sj_slice *text);

#endif
