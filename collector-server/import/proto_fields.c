#include "collector-server/import/proto_fields.h"

enum { VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 5, TYPE_BITS = 3 };

bool sj_proto_next(sj_reader *message, sj_proto_field *field)
{
    if (message->bad || sj_reader_left(message) == 0) {
        return false;
    }
    const uint64_t tag = sj_read_varint(message);
    *field = (sj_proto_field){.number = (uint32_t)(tag >> TYPE_BITS)};
    switch (tag & ((1 << TYPE_BITS) - 1)) {
    case VARINT:
        field->value = sj_read_varint(message);
        break;
    case FIXED64:
        field->value = sj_read_u64(message);
        break;
    case FIXED32:
        field->value = sj_read_u32(message);
        break;
    case LENGTH_DELIMITED: {
        const uint64_t size = sj_read_varint(message);
        field->is_bytes = true;
        if (message->bad || size > sj_reader_left(message)) {
            message->bad = true;
            return false;
        }
        field->bytes = (sj_slice){.data = sj_read_bytes(message, (size_t)size), .size = size};
        break;
    }
    default:
        message->bad = true;
    }
    message->bad = message->bad || tag >> 32 != 0 || field->number == 0;
    return !message->bad;
}

bool sj_proto_numbers(sj_slice message, uint64_t *values, size_t count)
{
    sj_reader reader = sj_proto_message(message);
    sj_proto_field field;
    while (sj_proto_next(&reader, &field)) {
        if (!field.is_bytes && field.number < count) {
            values[field.number] = field.value;
        }
    }
    return !reader.bad;
}

bool sj_proto_bytes(sj_slice message, uint32_t number, sj_slice *text)
{
    sj_reader reader = sj_proto_message(message);
    sj_proto_field field;
    *text = (sj_slice){0};
    while (sj_proto_next(&reader, &field)) {
        if (field.is_bytes && field.number == number) {
            *text = field.bytes;
        }
    }
    return !reader.bad;
}
