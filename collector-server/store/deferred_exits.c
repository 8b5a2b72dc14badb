#include "collector-server/store/deferred_exits.h"

static uint64_t version_of(const sj_deferred_exit *leaves, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (leaves[i].jumped_ticks != 0) {
            return SJ_DEFERRED_EXITS_TAIL_CALLS;
        }
    }
    return SJ_DEFERRED_EXITS_VERSION;
}

sj_status sj_deferred_exits_encode(const sj_deferred_exit *leaves, size_t count,
                                   uint64_t first_ticks, uint8_t *output, size_t capacity,
                                   size_t *size_bytes)
{
    sj_writer writer = sj_writer_of(output, capacity);
    const uint64_t version = version_of(leaves, count);
    sj_write_varint(&writer, version);
    sj_write_varint(&writer, count);
    uint64_t previous = 0;
    for (size_t i = 0; i < count; ++i) {
        const sj_deferred_exit *leave = &leaves[i];
        if (leave->end_ticks < first_ticks || (i > 0 && leave->call_index <= previous) ||
            leave->jumped_ticks > leave->end_ticks) {
            return SJ_EINVAL;
        }
        sj_write_varint(&writer, leave->call_index - previous);
        sj_write_varint(&writer, leave->end_ticks - first_ticks);
        sj_write_varint(&writer, leave->self_ticks);
        sj_write_u8(&writer, (uint8_t)leave->ending);
        sj_write_u8(&writer, (uint8_t)leave->flags);
        if (version == SJ_DEFERRED_EXITS_TAIL_CALLS) {
            sj_write_varint(
                &writer, leave->jumped_ticks != 0 ? 1 + leave->end_ticks - leave->jumped_ticks : 0);
        }
        previous = leave->call_index;
    }
    *size_bytes = sj_writer_used(&writer);
    return writer.bad ? SJ_ELIMIT : SJ_OK;
}

sj_status sj_deferred_exits_open(sj_slice bytes, uint64_t first_ticks,
                                 sj_deferred_exits_reader *reader)
{
    *reader = (sj_deferred_exits_reader){.reader = sj_reader_of(bytes.data, bytes.size),
                                         .first_ticks = first_ticks};
    reader->version = sj_read_varint(&reader->reader);
    reader->left = sj_read_varint(&reader->reader);
    if (reader->reader.bad) {
        return SJ_ECORRUPT;
    }
    return reader->version == SJ_DEFERRED_EXITS_VERSION ||
                   reader->version == SJ_DEFERRED_EXITS_TAIL_CALLS
               ? SJ_OK
               : SJ_EVERSION;
}

sj_status sj_deferred_exits_next(sj_deferred_exits_reader *reader, sj_deferred_exit *leave)
{
    if (reader->left == 0) {
        return SJ_EAGAIN;
    }
    reader->left--;
    reader->call_index += sj_read_varint(&reader->reader);
    leave->call_index = reader->call_index;
    leave->end_ticks = reader->first_ticks + sj_read_varint(&reader->reader);
    leave->self_ticks = sj_read_varint(&reader->reader);
    leave->ending = sj_read_u8(&reader->reader);
    leave->flags = sj_read_u8(&reader->reader);
    const uint64_t since =
        reader->version == SJ_DEFERRED_EXITS_TAIL_CALLS ? sj_read_varint(&reader->reader) : 0;
    leave->jumped_ticks = since != 0 ? leave->end_ticks - (since - 1) : 0;
    return reader->reader.bad ? SJ_ECORRUPT : SJ_OK;
}
