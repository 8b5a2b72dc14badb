#include "collector-server/ingest/credentials.h"

#include "proto/base/ids.h"

/* Protobuf's wire types, and field numbers (proto/wire/sojourn.proto). */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { FIELD_DEVICE_ID = 1, HELLO_TOKEN = 3, HELLO_SESSION_SECRET = 12, FLEET_TOKEN = 2 };

/* Reads one field. `bytes` is its contents if it is of type BYTES, else empty. */
static void read_field(sj_reader *reader, uint32_t *number, sj_slice *bytes)
{
    const uint64_t key = sj_read_varint(reader);
    *number = (uint32_t)(key >> 3);
    *bytes = (sj_slice){0};
    switch (key & 7) {
    case VARINT:
        (void)sj_read_varint(reader);
        break;
    case FIXED64:
        (void)sj_read_u64(reader);
        break;
    case FIXED32:
        (void)sj_read_u32(reader);
        break;
    case BYTES: {
        const uint64_t size = sj_read_varint(reader);
        reader->bad = reader->bad || size > sj_reader_left(reader);
        bytes->size = reader->bad ? 0 : (size_t)size;
        bytes->data = sj_read_bytes(reader, bytes->size);
        break;
    }
    default:
        reader->bad = true;
    }
}

sj_status sj_credentials_read(const sj_frame_view *frame, sj_credentials *credentials)
{
    const bool is_hello = frame->type == SJ_FRAME_HELLO || frame->type == SJ_FRAME_ENROL;
    sj_reader reader = sj_reader_of(frame->header.data, frame->header.size);
    *credentials = (sj_credentials){0};
    if (!is_hello && frame->type != SJ_FRAME_POLL && frame->type != SJ_FRAME_RESULT &&
        frame->type != SJ_FRAME_FETCH && frame->type != SJ_FRAME_CLAIM) {
        return SJ_EUNSUPPORTED;
    }
    while (!reader.bad && sj_reader_left(&reader) > 0) {
        uint32_t number;
        sj_slice bytes;
        read_field(&reader, &number, &bytes);
        if (number == FIELD_DEVICE_ID) {
            credentials->device_id = bytes;
        } else if (number == (is_hello ? HELLO_TOKEN : FLEET_TOKEN)) {
            credentials->token = bytes;
        } else if (is_hello && number == HELLO_SESSION_SECRET) {
            credentials->session_secret = bytes;
        }
    }
    return !reader.bad && credentials->device_id.size == SJ_DEVICE_ID_BYTES ? SJ_OK : SJ_ECORRUPT;
}
