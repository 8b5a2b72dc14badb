/* Two small columns of a block: endings of calls that did not simply return, and gaps.
 *
 *   endings: varint count | count x varint (distance to the previous ending's event << 2 | ending)
 *   gaps: varint count | count x { varint distance of before_event | varint reason | varint calls |
 *         varint events | zigzag start_ticks - previous end (first_ticks at first) |
 *         varint end_ticks - start_ticks } */
#include "proto/block/block_internal.h"

enum { MIN_ENDING_BYTES = 1, MIN_GAP_BYTES = 6 };

/* Reads the number of items, each of at least `item_bytes` bytes. Sets `bad` if it is 0 or too
 * high. */
static size_t read_count(sj_reader *reader, size_t item_bytes, size_t limit)
{
    const uint64_t count = sj_read_varint(reader);
    if (count == 0 || count > limit || count > sj_reader_left(reader) / item_bytes) {
        reader->bad = true;
        return 0;
    }
    return (size_t)count;
}

void sj_endings_encode(const sj_block_ending *endings, size_t count, sj_writer *writer)
{
    uint32_t previous = 0;
    sj_write_varint(writer, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t distance = endings[i].event - previous;
        sj_write_varint(writer, distance << 2 | endings[i].ending);
        previous = endings[i].event;
    }
}

sj_status sj_endings_decode(sj_slice bytes, uint32_t event_count, sj_block_buffer *buffer,
                            size_t *count)
{
    *count = 0;
    if (bytes.size == 0) {
        return SJ_OK;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const size_t stored = read_count(&reader, MIN_ENDING_BYTES, event_count);
    SJ_TRY(sj_block_buffer_reserve(buffer, stored * sizeof(sj_block_ending)));
    sj_block_ending *endings = (void *)buffer->data;
    uint64_t event = 0;
    for (size_t i = 0; i < stored; i++) {
        const uint64_t word = sj_read_varint(&reader);
        const uint64_t distance = word >> 2;
        event += distance;
        if (reader.bad || (i != 0 && distance == 0) || distance >= event_count ||
            event >= event_count || (word & 3) == SJ_ENDING_RETURNED) {
            return SJ_ECORRUPT;
        }
        endings[i] = (sj_block_ending){.event = (uint32_t)event, .ending = word & 3};
    }
    if (reader.bad || sj_reader_left(&reader) != 0) {
        return SJ_ECORRUPT;
    }
    *count = stored;
    return SJ_OK;
}

sj_status sj_gaps_sum(const sj_gap *gaps, size_t count, uint64_t *lost_calls, uint64_t *lost_events)
{
    bool overflow = false;
    *lost_calls = 0;
    *lost_events = 0;
    for (size_t i = 0; i < count; i++) {
        overflow |= __builtin_add_overflow(*lost_calls, gaps[i].calls, lost_calls);
        overflow |= __builtin_add_overflow(*lost_events, gaps[i].events, lost_events);
    }
    return overflow ? SJ_EINVAL : SJ_OK;
}

void sj_gaps_encode(const sj_gap *gaps, size_t count, uint64_t first_ticks, sj_writer *writer)
{
    uint32_t before_event = 0;
    uint64_t ticks = first_ticks;
    sj_write_varint(writer, count);
    for (size_t i = 0; i < count; i++) {
        sj_write_varint(writer, gaps[i].before_event - before_event);
        sj_write_varint(writer, gaps[i].reason);
        sj_write_varint(writer, gaps[i].calls);
        sj_write_varint(writer, gaps[i].events);
        sj_write_zigzag(writer, (int64_t)(gaps[i].start_ticks - ticks));
        sj_write_varint(writer, gaps[i].end_ticks - gaps[i].start_ticks);
        before_event = gaps[i].before_event;
        ticks = gaps[i].end_ticks;
    }
}

static bool read_gap(sj_reader *reader, uint32_t event_count, const sj_gap *previous, sj_gap *gap)
{
    const uint64_t distance = sj_read_varint(reader);
    const uint64_t reason = sj_read_varint(reader);
    gap->calls = sj_read_varint(reader);
    gap->events = sj_read_varint(reader);
    gap->start_ticks = previous->end_ticks + (uint64_t)sj_read_zigzag(reader);
    gap->reason = (uint32_t)reason;
    const bool overflow =
        __builtin_add_overflow(gap->start_ticks, sj_read_varint(reader), &gap->end_ticks);
    gap->before_event = previous->before_event + (uint32_t)distance;
    return !reader->bad && !overflow && reason != 0 && reason <= UINT32_MAX &&
           distance <= event_count - previous->before_event;
}

sj_status sj_gaps_decode(sj_slice bytes, const sj_block_header *header, sj_block_buffer *buffer,
                         size_t *count)
{
    size_t stored = 0;
    *count = 0;
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    if (bytes.size != 0) {
        stored = read_count(&reader, MIN_GAP_BYTES, SJ_BLOCK_MAX_GAPS);
    }
    SJ_TRY(sj_block_buffer_reserve(buffer, stored * sizeof(sj_gap)));
    sj_gap *gaps = (void *)buffer->data;
    sj_gap previous = {.end_ticks = header->first_ticks};
    for (size_t i = 0; i < stored; i++) {
        if (!read_gap(&reader, header->event_count, &previous, &gaps[i])) {
            return SJ_ECORRUPT;
        }
        previous = gaps[i];
    }
    uint64_t calls;
    uint64_t events;
    if (reader.bad || sj_reader_left(&reader) != 0 ||
        sj_gaps_sum(gaps, stored, &calls, &events) != SJ_OK || calls != header->lost_calls ||
        events != header->lost_events) {
        return SJ_ECORRUPT;
    }
    *count = stored;
    return SJ_OK;
}
