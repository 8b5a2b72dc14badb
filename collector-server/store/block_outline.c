#include "collector-server/store/block_outline.h"

#include "proto/base/cursor.h"

enum {
    ROW_BYTES = 16, /* approximate size of a row without its blobs */
    PERMILLE = 25,
    ENDING_BITS = 2,
    MOST_DEPTH = INT32_MAX
};

size_t sj_block_outline_budget(const sj_block_header *header, size_t block_bytes)
{
    const size_t share = block_bytes * PERMILLE / 1000;
    if (header->kind != SJ_BLOCK_CALLS || header->call_count < SJ_BLOCK_OUTLINE_LEAST_CALLS ||
        share <= ROW_BYTES) {
        return 0;
    }
    return share - ROW_BYTES < SJ_BLOCK_OUTLINE_MOST_BYTES ? share - ROW_BYTES
                                                           : SJ_BLOCK_OUTLINE_MOST_BYTES;
}

/* Returns the unit of the outline's times, in ticks. All times, relative to the block's first
 * time, are multiples of it. */
static uint64_t find_unit(const sj_outline *outline, const sj_block_header *header)
{
    const uint64_t step = header->clock_step > 1 ? header->clock_step : 1;
    for (size_t i = 0; i < outline->call_count; ++i) {
        const sj_outline_call *call = &outline->calls[i];
        if ((call->start_ticks - header->first_ticks) % step != 0 ||
            call->duration_ticks % step != 0 || call->self_ticks % step != 0) {
            return 1;
        }
    }
    return outline->floor_ticks % step == 0 ? step : 1;
}

static void write_calls(sj_writer *writer, const sj_outline *outline, const sj_block_header *header)
{
    const uint64_t unit = find_unit(outline, header);
    uint64_t index = header->first_call;
    uint64_t start = header->first_ticks;
    uint32_t depth = 0;
    sj_write_varint(writer, SJ_BLOCK_OUTLINE_VERSION);
    sj_write_varint(writer, unit);
    sj_write_varint(writer, outline->call_count);
    for (size_t i = 0; i < outline->call_count; ++i) {
        const sj_outline_call *call = &outline->calls[i];
        sj_write_varint(writer, call->call_index - index);
        sj_write_varint(writer, (call->start_ticks - start) / unit);
        sj_write_varint(writer, call->function);
        sj_write_zigzag(writer, (int64_t)call->depth - (int64_t)depth);
        index = call->call_index;
        start = call->start_ticks;
        depth = call->depth;
        if (call->ending == SJ_NOT_ENDED) {
            sj_write_varint(writer, 0);
            continue;
        }
        const uint32_t ending_bits = call->ending + (call->flags << ENDING_BITS);
        sj_write_varint(writer, (call->duration_ticks - outline->floor_ticks) / unit);
        sj_write_varint(writer, call->self_ticks / unit * 2 + (ending_bits != 0));
        if (ending_bits != 0) {
            sj_write_u8(writer, (uint8_t)ending_bits);
        }
    }
}

sj_status sj_block_outline_encode(sj_outline *outline, const sj_block_header *header, size_t budget,
                                  sj_block_outline *encoded)
{
    for (size_t most = SJ_OUTLINE_CALLS; outline->has_all_open;) {
        sj_writer writer = sj_writer_of(encoded->bytes, sizeof(encoded->bytes));
        sj_outline_shorten(outline, most);
        write_calls(&writer, outline, header);
        const size_t size = sj_writer_used(&writer);
        if (!writer.bad && size <= budget) {
            encoded->floor_ticks = outline->floor_ticks;
            encoded->calls = (sj_slice){.data = encoded->bytes, .size = size};
            return SJ_OK;
        }
        if (most == 0) {
            break;
        }
        const size_t fit = outline->call_count * budget / (size + 1);
        most = fit < most ? fit : most - 1;
    }
    return SJ_ELIMIT;
}

/* Reads the fields of a call after its depth. */
static void read_end(sj_reader *reader, uint64_t unit, uint64_t floor_ticks, sj_outline_call *call)
{
    const uint64_t over = sj_read_varint(reader);
    if (over == 0) {
        call->ending = SJ_NOT_ENDED;
        return;
    }
    const uint64_t self = sj_read_varint(reader);
    call->duration_ticks = floor_ticks + over * unit;
    call->self_ticks = self / 2 * unit;
    const uint32_t ending_bits = (self & 1) != 0 ? sj_read_u8(reader) : 0;
    call->ending = ending_bits & ((1u << ENDING_BITS) - 1u);
    call->flags = ending_bits >> ENDING_BITS;
}

sj_status sj_block_outline_read_calls(sj_slice bytes, uint64_t first_call, uint64_t first_ticks,
                                      uint64_t floor_ticks, sj_outline_call *calls, size_t *count)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    if (sj_read_varint(&reader) != SJ_BLOCK_OUTLINE_VERSION) {
        return reader.bad ? SJ_ECORRUPT : SJ_EVERSION;
    }
    const uint64_t unit = sj_read_varint(&reader);
    const uint64_t number = sj_read_varint(&reader);
    if (reader.bad || number > SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN) {
        return SJ_ECORRUPT;
    }
    int64_t depth = 0;
    for (uint64_t i = 0; i < number; ++i) {
        first_call += sj_read_varint(&reader);
        first_ticks += sj_read_varint(&reader) * unit;
        calls[i] = (sj_outline_call){.call_index = first_call, .start_ticks = first_ticks};
        calls[i].function = (uint32_t)sj_read_varint(&reader);
        const int64_t step = sj_read_zigzag(&reader);
        if (step < -depth || step > MOST_DEPTH - depth) {
            return SJ_ECORRUPT;
        }
        depth += step;
        calls[i].depth = (uint32_t)depth;
        read_end(&reader, unit, floor_ticks, &calls[i]);
        if (reader.bad) {
            return SJ_ECORRUPT;
        }
    }
    *count = (size_t)number;
    return SJ_OK;
}
