/* Reads and writes frames. frame.h documents the bytes. */
#include "proto/wire/frame.h"
#include "proto/base/crc32c.h"

enum { CRC_AT = 16 };

/* Returns the checksum of a frame. It covers the whole frame except its own four bytes. */
static uint32_t crc_of_frame(const uint8_t *frame, size_t frame_bytes)
{
    const uint32_t crc = sj_crc32c(0, frame, CRC_AT);
    return sj_crc32c(crc, frame + SJ_FRAME_PREFIX_BYTES, frame_bytes - SJ_FRAME_PREFIX_BYTES);
}

sj_status sj_frame_read(sj_slice bytes, sj_frame_view *frame)
{
    memset(frame, 0, sizeof(*frame));
    if (bytes.size < SJ_FRAME_PREFIX_BYTES) {
        return SJ_EAGAIN;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint32_t magic = sj_read_u32(&reader);
    frame->major = sj_read_u8(&reader);
    frame->minor = sj_read_u8(&reader);
    frame->type = sj_read_u16(&reader);
    frame->header.size = sj_read_u32(&reader);
    frame->payload.size = sj_read_u32(&reader);
    const uint32_t crc = sj_read_u32(&reader);
    if (magic != SJ_FRAME_MAGIC) {
        return SJ_ECORRUPT;
    }
    if (frame->major != SJ_FRAME_MAJOR) {
        return SJ_EVERSION;
    }
    if (frame->header.size > SJ_FRAME_MAX_HEADER_BYTES ||
        frame->payload.size > SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES - frame->header.size) {
        return SJ_ELIMIT;
    }
    frame->frame_bytes = SJ_FRAME_PREFIX_BYTES + frame->header.size + frame->payload.size;
    if (bytes.size < frame->frame_bytes) {
        return SJ_EAGAIN;
    }
    frame->header.data = sj_read_bytes(&reader, frame->header.size);
    frame->payload.data = sj_read_bytes(&reader, frame->payload.size);
    return crc == crc_of_frame(bytes.data, frame->frame_bytes) ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_frame_write(uint16_t type, sj_slice header, sj_slice payload, uint8_t *output,
                         size_t capacity, size_t *size_bytes)
{
    if (header.size > SJ_FRAME_MAX_HEADER_BYTES ||
        payload.size > SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES - header.size) {
        return SJ_ELIMIT;
    }
    sj_writer writer = sj_writer_of(output, capacity);
    sj_write_u32(&writer, SJ_FRAME_MAGIC);
    sj_write_u8(&writer, SJ_FRAME_MAJOR);
    sj_write_u8(&writer, SJ_FRAME_MINOR);
    sj_write_u16(&writer, type);
    sj_write_u32(&writer, (uint32_t)header.size);
    sj_write_u32(&writer, (uint32_t)payload.size);
    sj_write_u32(&writer, 0);
    sj_write_bytes(&writer, header.data, header.size);
    sj_write_bytes(&writer, payload.data, payload.size);
    if (writer.bad) {
        return SJ_ELIMIT;
    }
    *size_bytes = sj_writer_used(&writer);
    sj_writer crc = sj_writer_of(output + CRC_AT, sizeof(uint32_t));
    sj_write_u32(&crc, crc_of_frame(output, *size_bytes));
    return SJ_OK;
}
