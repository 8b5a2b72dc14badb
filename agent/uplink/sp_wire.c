#include "agent/uplink/sp_wire.h"

static const uint8_t req_greeting[SJ_SP_GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
static const uint8_t rep_greeting[SJ_SP_GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

enum { IPC_MESSAGE = 1, LENGTH_BYTES = 8, REQUEST_BYTES = 4 };

static uint64_t read_big_endian(sj_reader *reader, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
        value = value << 8 | sj_read_u8(reader);
    }
    return value;
}

static void write_big_endian(sj_writer *writer, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        sj_write_u8(writer, (uint8_t)(value >> 8 * i));
    }
}

void sj_sp_greeting(uint8_t greeting[SJ_SP_GREETING_BYTES])
{
    memcpy(greeting, req_greeting, sizeof(req_greeting));
}

size_t sj_sp_header(bool is_ipc, uint32_t request, uint64_t body_bytes,
                    uint8_t header[SJ_SP_HEADER_MAX_BYTES])
{
    sj_writer writer = sj_writer_of(header, SJ_SP_HEADER_MAX_BYTES);
    if (is_ipc) {
        sj_write_u8(&writer, IPC_MESSAGE);
    }
    write_big_endian(&writer, body_bytes + REQUEST_BYTES, LENGTH_BYTES);
    write_big_endian(&writer, request, REQUEST_BYTES);
    return sj_writer_used(&writer);
}

uint8_t *sj_sp_reader_space(sj_sp_reader *reader, size_t *space_bytes)
{
    if (reader->used != 0) {
        reader->count -= reader->used;
        memmove(reader->bytes, reader->bytes + reader->used, reader->count);
        reader->used = 0;
    }
    *space_bytes = sizeof(reader->bytes) - reader->count;
    return reader->bytes + reader->count;
}

void sj_sp_reader_fed(sj_sp_reader *reader, size_t bytes)
{
    reader->count += bytes;
}

/* Reads the greeting. Refuses it at the first wrong byte. */
static sj_status read_greeting(sj_sp_reader *reader, sj_reader *bytes)
{
    const size_t there =
        sj_reader_left(bytes) < SJ_SP_GREETING_BYTES ? sj_reader_left(bytes) : SJ_SP_GREETING_BYTES;
    if (memcmp(sj_read_bytes(bytes, there), rep_greeting, there) != 0) {
        return SJ_EUNSUPPORTED;
    }
    if (there < SJ_SP_GREETING_BYTES) {
        return SJ_EAGAIN;
    }
    reader->used += SJ_SP_GREETING_BYTES;
    reader->is_greeted = true;
    return SJ_OK;
}

sj_status sj_sp_reader_next(sj_sp_reader *reader, sj_sp_message *message)
{
    sj_reader bytes = sj_reader_of(reader->bytes + reader->used, reader->count - reader->used);
    if (!reader->is_greeted) {
        SJ_TRY(read_greeting(reader, &bytes));
    }
    if (reader->is_ipc && sj_reader_left(&bytes) != 0 && sj_read_u8(&bytes) != IPC_MESSAGE) {
        return SJ_ECORRUPT;
    }
    if (sj_reader_left(&bytes) < LENGTH_BYTES) {
        return SJ_EAGAIN;
    }
    const uint64_t length = read_big_endian(&bytes, LENGTH_BYTES);
    if (length < REQUEST_BYTES) {
        return SJ_ECORRUPT;
    }
    if (length > REQUEST_BYTES + SJ_SP_BODY_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    if (sj_reader_left(&bytes) < length) {
        return SJ_EAGAIN;
    }
    message->request = (uint32_t)read_big_endian(&bytes, REQUEST_BYTES);
    message->body.size = (size_t)length - REQUEST_BYTES;
    message->body.data = sj_read_bytes(&bytes, message->body.size);
    reader->used = (size_t)(bytes.at - reader->bytes);
    return (message->request & SJ_SP_REQUEST_BIT) != 0 ? SJ_OK : SJ_ECORRUPT;
}
