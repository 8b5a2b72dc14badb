/* The column of tail calls (README.md): the calls of the key-frame that have jumped, then which
 * ENTERs are tail calls.
 *
 * A call is a tail call nearly always or never: by itself and the two events in front of it one
 * knows. So the column holds the ENTERs that are not what the last one in the same context was. */
#include "proto/block/block_internal.h"

#include <string.h>

enum { CONTEXT_BITS = 12, CONTEXTS = 1 << CONTEXT_BITS };

/* What the last ENTER in a context was: 0 no tail call, else 1 + ended. */
typedef struct tail_contexts {
    uint8_t last[CONTEXTS];
} tail_contexts;

static inline uint32_t symbol_at(const sj_block *block, size_t event)
{
    return block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
}

/* Where the last of three symbols is an ENTER. The symbols before a block's count as 0. */
static inline uint32_t context_of(uint32_t first, uint32_t before, uint32_t symbol)
{
    const uint32_t mixed = (symbol * UINT32_C(0x9e3779b1)) ^ (before * UINT32_C(0x85ebca6b)) ^
                           (first * UINT32_C(0xc2b2ae35));
    return mixed >> (32 - CONTEXT_BITS);
}

static inline uint8_t *find_context(tail_contexts *contexts, const sj_block *block, size_t event)
{
    const uint32_t before = event > 0 ? symbol_at(block, event - 1) : 0;
    const uint32_t first = event > 1 ? symbol_at(block, event - 2) : 0;
    return &contexts->last[context_of(first, before, symbol_at(block, event))];
}

static size_t count_left(const sj_stack_frame *frames, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        left += frames[i].left_ticks != 0;
    }
    return left;
}

static bool has_tail_calls(const sj_event *events, size_t count)
{
    uint32_t any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= events[i].tail_call;
    }
    return any != 0;
}

static void encode_frames(const sj_stack_frame *frames, size_t count, size_t left,
                          sj_writer *writer)
{
    size_t previous = 0;
    sj_write_varint(writer, left);
    for (size_t i = 0; i < count; i++) {
        if (frames[i].left_ticks != 0) {
            sj_write_varint(writer, i - previous);
            sj_write_varint(writer, frames[i].left_ticks - frames[i].start_ticks);
            previous = i;
        }
    }
}

static void encode_events(const sj_event *events, const sj_block *told, sj_writer *writer)
{
    tail_contexts contexts = {0};
    uint64_t run = 0;
    for (size_t i = 0; i < told->header.event_count; i++) {
        if (events[i].function == SJ_EVENT_LEAVE) {
            continue;
        }
        uint8_t *last = find_context(&contexts, told, i);
        if (*last == events[i].tail_call) {
            run++;
            continue;
        }
        sj_write_varint(writer, run);
        sj_write_varint(writer, events[i].tail_call);
        *last = (uint8_t)events[i].tail_call;
        run = 0;
    }
}

sj_status sj_tail_calls_check(const sj_block_input *input)
{
    const uint32_t frames = sj_block_inline_frames(&input->header);
    for (uint32_t i = 0; i < frames; i++) {
        if (input->frames[i].left_ticks != 0 &&
            input->frames[i].left_ticks < input->frames[i].start_ticks) {
            return SJ_EINVAL;
        }
    }
    const bool any = has_tail_calls(input->events, input->header.event_count);
    uint32_t leaves = 0; /* right in front of the event */
    for (uint32_t i = 0; i < input->header.event_count && any; i++) {
        const sj_event *event = &input->events[i];
        const bool leaving = event->function == SJ_EVENT_LEAVE;
        if (event->tail_call > (leaving ? 0 : 1 + leaves) ||
            event->tail_call > SJ_BLOCK_MAX_TAIL_ENDED) {
            return SJ_EINVAL;
        }
        leaves = leaving ? leaves + 1 : 0;
    }
    return SJ_OK;
}

void sj_tail_calls_encode(const sj_block_input *input, const sj_block *told, sj_writer *writer)
{
    const uint32_t frames = sj_block_inline_frames(&told->header);
    const size_t left = count_left(input->frames, frames);
    const bool any = has_tail_calls(input->events, told->header.event_count);
    if (left == 0 && !any) {
        return;
    }
    encode_frames(input->frames, frames, left, writer);
    if (any) {
        encode_events(input->events, told, writer);
    }
}

static bool read_frames(sj_reader *reader, size_t frame_count, sj_stack_frame *frames)
{
    const uint64_t left = sj_read_varint(reader);
    uint64_t place = 0;
    for (uint64_t i = 0; i < left; i++) {
        const uint64_t distance = sj_read_varint(reader);
        const uint64_t lasted = sj_read_varint(reader);
        if (reader->bad || distance >= frame_count || (i != 0 && distance == 0) ||
            place + distance >= frame_count) {
            return false;
        }
        place += distance;
        sj_stack_frame *frame = &frames[place];
        if (__builtin_add_overflow(frame->start_ticks, lasted, &frame->left_ticks) ||
            frame->left_ticks == 0) {
            return false;
        }
    }
    return !reader->bad;
}

/* ENTERs before the next one that is not what the last one in its context was; UINT64_MAX and
 * somewhat less: there is none. */
static uint64_t read_run(sj_reader *reader)
{
    return sj_reader_left(reader) != 0 ? sj_read_varint(reader) : UINT64_MAX;
}

static bool read_change(sj_reader *reader, uint8_t *last)
{
    const uint64_t tail_call = sj_read_varint(reader);
    if (reader->bad || tail_call > SJ_BLOCK_MAX_TAIL_ENDED || tail_call == *last) {
        return false;
    }
    *last = (uint8_t)tail_call;
    return true;
}

/* Reads the events. `calls` has room for one more than there are ENTERs, so that none of them needs
 * a branch on whether it is a tail call. Nothing but LEAVEs may stand where the calls end that a
 * tail call names. */
static inline __attribute__((always_inline)) sj_status read_events(sj_reader *reader,
                                                                   const sj_block *block, bool wide,
                                                                   sj_block_tail_call *calls,
                                                                   size_t *count)
{
    tail_contexts contexts = {0};
    const size_t events = block->header.event_count;
    uint64_t run = read_run(reader);
    uint32_t before = 0;
    uint32_t first = 0;
    uint32_t misfits = 0;
    size_t after = 0; /* 1 + the last ENTER */
    size_t found = 0;
    for (size_t i = 0; i < events; i++) {
        const uint32_t symbol = wide ? block->symbols32[i] : block->symbols16[i];
        if (symbol != SJ_EVENT_LEAVE) {
            uint8_t *last = &contexts.last[context_of(first, before, symbol)];
            if (__builtin_expect(run-- == 0, 0)) {
                if (!read_change(reader, last)) {
                    return SJ_ECORRUPT;
                }
                run = read_run(reader);
            }
            const uint32_t tail_call = *last;
            calls[found] = (sj_block_tail_call){.event = (uint32_t)i, .ended = tail_call - 1};
            found += tail_call != 0;
            misfits |= tail_call > 1 + i - after;
            after = i + 1;
        }
        first = before;
        before = symbol;
    }
    *count = found;
    const bool ended = sj_reader_left(reader) == 0 && run >= UINT64_MAX / 2;
    return misfits == 0 && ended && !reader->bad ? SJ_OK : SJ_ECORRUPT;
}

static sj_status read_all_events(sj_reader *reader, const sj_block *block,
                                 sj_block_tail_call *calls, size_t *count)
{
    if (sj_reader_left(reader) == 0) {
        return SJ_OK;
    }
    return block->symbols16 != NULL ? read_events(reader, block, false, calls, count)
                                    : read_events(reader, block, true, calls, count);
}

sj_status sj_tail_calls_decode(sj_slice bytes, const sj_block *block, bool with_events,
                               sj_stack_frame *frames, sj_block_buffer *buffer, size_t *count)
{
    *count = 0;
    if (bytes.size == 0) {
        return SJ_OK;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    if (!read_frames(&reader, block->frame_count, frames)) {
        return SJ_ECORRUPT;
    }
    if (!with_events) {
        return SJ_OK;
    }
    const size_t room = block->header.call_count + (size_t)1;
    SJ_TRY(sj_block_buffer_reserve(buffer, room * sizeof(sj_block_tail_call)));
    return read_all_events(&reader, block, (void *)buffer->data, count);
}
