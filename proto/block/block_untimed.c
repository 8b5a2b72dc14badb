/* The column of untimed calls (proto/README.md) lists the symbols whose ENTERs have no clock
 * reading, and the untimed calls of the key-frame. It consists of varints:
 *
 *   count of symbols | each symbol | index of each untimed frame, up to the end of the column
 *
 * Symbols and indexes are stored as the distance from the previous one, the first from 0. */
#include "proto/block/block_internal.h"

#include <string.h>

void sj_untimed_encode(const uint8_t *untimed, size_t function_count, const sj_stack_frame *frames,
                       size_t frame_count, sj_writer *writer)
{
    size_t symbols = 0;
    size_t open = 0;
    for (size_t i = 1; i <= function_count; i++) {
        symbols += untimed[i];
    }
    for (size_t i = 0; i < frame_count; i++) {
        open += (frames[i].flags & SJ_CALL_UNTIMED) != 0;
    }
    if (symbols + open == 0) {
        return;
    }
    sj_write_varint(writer, symbols);
    size_t previous = 0;
    for (size_t i = 1; i <= function_count; i++) {
        if (untimed[i] != 0) {
            sj_write_varint(writer, i - previous);
            previous = i;
        }
    }
    previous = 0;
    for (size_t i = 0; i < frame_count; i++) {
        if ((frames[i].flags & SJ_CALL_UNTIMED) != 0) {
            sj_write_varint(writer, i - previous);
            previous = i;
        }
    }
}

static sj_status decode_symbols(sj_reader *reader, uint64_t count, size_t function_count,
                                uint8_t *untimed)
{
    uint64_t symbol = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t distance = sj_read_varint(reader);
        if (reader->bad || distance == 0 || distance > function_count - symbol) {
            return SJ_ECORRUPT;
        }
        symbol += distance;
        untimed[symbol] = 1;
    }
    return SJ_OK;
}

static sj_status decode_frames(sj_reader *reader, sj_stack_frame *frames, size_t frame_count)
{
    uint64_t place = 0;
    for (bool first = true; sj_reader_left(reader) != 0; first = false) {
        const uint64_t distance = sj_read_varint(reader);
        if (reader->bad || distance >= frame_count - place || (distance == 0 && !first)) {
            return SJ_ECORRUPT;
        }
        place += distance;
        frames[place].flags |= SJ_CALL_UNTIMED;
    }
    return SJ_OK;
}

sj_status sj_untimed_decode(sj_slice bytes, size_t function_count, sj_stack_frame *frames,
                            size_t frame_count, sj_block_buffer *buffer, const uint8_t **untimed)
{
    if (bytes.size == 0) {
        return SJ_OK;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint64_t count = sj_read_varint(&reader);
    if (reader.bad || count > function_count) {
        return SJ_ECORRUPT;
    }
    if (count != 0) {
        SJ_TRY(sj_block_buffer_reserve(buffer, function_count + 1));
        memset(buffer->data, 0, function_count + 1);
        SJ_TRY(decode_symbols(&reader, count, function_count, buffer->data));
        *untimed = buffer->data;
    }
    return decode_frames(&reader, frames, frame_count);
}
