/* Reads, writes and checks the 128 bytes of a block's header. proto/README.md has their table. */
#include "proto/base/crc32c.h"
#include "proto/block/block_internal.h"

#include <stdlib.h>

enum { RESERVED_BYTES = 8 };

void sj_block_header_write(sj_writer *writer, const sj_block_header *header)
{
    static const uint8_t reserved[RESERVED_BYTES];
    sj_write_u32(writer, SJ_BLOCK_MAGIC);
    sj_write_u16(writer, header->version);
    sj_write_u8(writer, header->kind);
    sj_write_u8(writer, header->flags);
    sj_write_bytes(writer, header->session.bytes, SJ_SESSION_ID_BYTES);
    sj_write_u32(writer, header->stream);
    sj_write_u64(writer, header->first_event);
    sj_write_u64(writer, header->first_call);
    sj_write_u32(writer, header->event_count);
    sj_write_u32(writer, header->call_count);
    sj_write_u64(writer, header->first_ticks);
    sj_write_u64(writer, header->last_ticks);
    sj_write_u64(writer, header->lost_calls);
    sj_write_u64(writer, header->lost_events);
    sj_write_u32(writer, header->clock_step);
    sj_write_u32(writer, header->open_depth);
    sj_write_u32(writer, header->end_depth);
    sj_write_u32(writer, header->stack_reference);
    sj_write_u32(writer, header->stack_frames);
    sj_write_u32(writer, header->gap_depth);
    sj_write_u32(writer, header->waited_depth);
    sj_write_u32(writer, header->uncertain_depth);
    sj_write_u32(writer, header->column_count);
    sj_write_bytes(writer, reserved, sizeof(reserved));
}

static void read_fields(sj_reader *reader, sj_block_header *header)
{
    const uint8_t *session = sj_read_bytes(reader, SJ_SESSION_ID_BYTES);
    if (session != NULL) {
        memcpy(header->session.bytes, session, SJ_SESSION_ID_BYTES);
    }
    header->stream = sj_read_u32(reader);
    header->first_event = sj_read_u64(reader);
    header->first_call = sj_read_u64(reader);
    header->event_count = sj_read_u32(reader);
    header->call_count = sj_read_u32(reader);
    header->first_ticks = sj_read_u64(reader);
    header->last_ticks = sj_read_u64(reader);
    header->lost_calls = sj_read_u64(reader);
    header->lost_events = sj_read_u64(reader);
    header->clock_step = sj_read_u32(reader);
    header->open_depth = sj_read_u32(reader);
    header->end_depth = sj_read_u32(reader);
    header->stack_reference = sj_read_u32(reader);
    header->stack_frames = sj_read_u32(reader);
    header->gap_depth = sj_read_u32(reader);
    header->waited_depth = sj_read_u32(reader);
    header->uncertain_depth = sj_read_u32(reader);
    header->column_count = sj_read_u32(reader);
}

static bool reserved_is_zero(sj_reader *reader)
{
    uint8_t any = 0;
    for (int i = 0; i < RESERVED_BYTES; i++) {
        any |= sj_read_u8(reader);
    }
    return any == 0;
}

sj_status sj_block_header_check(const sj_block_header *header)
{
    if (header->event_count > SJ_BLOCK_MAX_EVENTS || header->column_count > SJ_BLOCK_MAX_COLUMNS) {
        return SJ_ELIMIT;
    }
    if ((header->kind != SJ_BLOCK_CALLS && header->kind != SJ_BLOCK_DEEP_FRAMES) ||
        header->clock_step == 0 || header->last_ticks < header->first_ticks ||
        header->stack_frames > header->open_depth || header->call_count > header->event_count ||
        (header->stack_frames != 0 && header->stack_reference == 0) ||
        (header->kind == SJ_BLOCK_DEEP_FRAMES && header->event_count != 0)) {
        return SJ_ECORRUPT;
    }
    const uint32_t most_frames = header->kind == SJ_BLOCK_DEEP_FRAMES ? SJ_BLOCK_MAX_STACK_FRAMES
                                                                      : SJ_BLOCK_MAX_INLINE_FRAMES;
    if (sj_block_inline_frames(header) > most_frames) {
        return SJ_ELIMIT;
    }
    const uint64_t leaves = header->event_count - header->call_count;
    const uint64_t opened = (uint64_t)header->open_depth + header->call_count;
    return opened >= leaves && opened - leaves == header->end_depth ? SJ_OK : SJ_ECORRUPT;
}

size_t sj_block_column_limit(unsigned column, const sj_block_header *header, size_t gap_count,
                             size_t value_count, size_t text_bytes)
{
    /* upper bounds of the encoded items */
    enum { FRAME_BYTES = 120, GAP_BYTES = 50, SYMBOL_BYTES = 3 };
    const size_t events = header->kind == SJ_BLOCK_CALLS ? header->event_count : 0;
    switch (column) {
    case SJ_COLUMN_KEYFRAME:
        return SJ_VARINT_MAX_BYTES + (size_t)sj_block_inline_frames(header) * FRAME_BYTES;
    case SJ_COLUMN_FUNCTIONS:
        return SJ_VARINT_MAX_BYTES + events * SJ_VARINT32_MAX_BYTES;
    case SJ_COLUMN_RUNS:
    case SJ_COLUMN_MISSES:
        return (events + 1) * SYMBOL_BYTES;
    case SJ_COLUMN_TIMES:
        return events + 1;
    case SJ_COLUMN_LONG_TIMES:
        return events * SJ_VARINT_MAX_BYTES;
    case SJ_COLUMN_ENDINGS:
        return SJ_VARINT_MAX_BYTES + events * SJ_VARINT32_MAX_BYTES;
    case SJ_COLUMN_GAPS:
        return SJ_VARINT_MAX_BYTES + gap_count * GAP_BYTES;
    case SJ_COLUMN_VALUE_ROWS:
        return sj_block_value_rows_bound(value_count);
    case SJ_COLUMN_VALUES:
        return sj_block_values_bound(value_count, text_bytes);
    case SJ_COLUMN_JUMPED_FRAMES:
        return (size_t)sj_block_inline_frames(header) * (SJ_VARINT_MAX_BYTES + SYMBOL_BYTES);
    case SJ_COLUMN_TAIL_SYMBOLS:
        return events * (SYMBOL_BYTES + 2);
    case SJ_COLUMN_UNTIMED:
        return SJ_VARINT_MAX_BYTES + events * SYMBOL_BYTES +
               (size_t)sj_block_inline_frames(header) * SYMBOL_BYTES;
    default:
        return 0;
    }
}

sj_status sj_block_read_header(sj_slice bytes, sj_block_header *header)
{
    memset(header, 0, sizeof(*header));
    if (bytes.size > SJ_BLOCK_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    if (bytes.size < SJ_BLOCK_HEADER_BYTES) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(bytes.data, SJ_BLOCK_HEADER_BYTES);
    if (sj_read_u32(&reader) != SJ_BLOCK_MAGIC) {
        return SJ_ECORRUPT;
    }
    header->version = sj_read_u16(&reader);
    if (header->version < SJ_BLOCK_CLOSED_VERSION || header->version > SJ_BLOCK_VERSION) {
        return SJ_EVERSION;
    }
    header->kind = sj_read_u8(&reader);
    header->flags = sj_read_u8(&reader);
    read_fields(&reader, header);
    if (!reserved_is_zero(&reader) || reader.bad) {
        return SJ_ECORRUPT;
    }
    return sj_block_header_check(header);
}

sj_status sj_block_set_session(uint8_t *bytes, size_t size, const sj_session_id *session)
{
    enum { SESSION_OFFSET = 8 };
    if (size < SJ_BLOCK_HEADER_BYTES + SJ_BLOCK_CRC_BYTES) {
        return SJ_ECORRUPT;
    }
    memcpy(bytes + SESSION_OFFSET, session->bytes, SJ_SESSION_ID_BYTES);
    sj_writer trailer = sj_writer_of(bytes + size - SJ_BLOCK_CRC_BYTES, SJ_BLOCK_CRC_BYTES);
    sj_write_u32(&trailer, sj_crc32c(0, bytes, size - SJ_BLOCK_CRC_BYTES));
    return SJ_OK;
}
