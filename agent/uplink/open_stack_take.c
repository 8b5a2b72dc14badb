/* Design notes.
 * Nearly all records of a thread enter or leave its innermost call, on its own stack, with no gap
 * that still concerns an open call. This loop takes those and no others: the state of the stream
 * lives in registers and each record is decided by a few compares. Whatever is not ordinary ends it
 * before it has touched anything of that record, and goes through the functions of open_stack.h,
 * which know every case; both must do the same, which the assembler's tests compare. */
#include "agent/uplink/open_stack.h"

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* What the loop changes. */
typedef struct hot_stream {
    sj_frame *frames;
    uint32_t depth;
    sj_event *event; /* the next one */
    uint64_t next_call;
    uint64_t innermost; /* stack address of the innermost open call; UINT64_MAX: none */
    uint64_t ticks;     /* of the last record */
} hot_stream;

/* The calls that a LEAVE may end here are deeper than this: leaving the others changes what gaps or
 * stored frames say. */
static uint32_t ordinary_depth(const sj_open_stack *stream)
{
    const uint32_t stored = stream->stored_depth > 0 ? stream->stored_depth + 1 : 0;
    const uint32_t depth = sj_call_trust_flagged(&stream->trust);
    return stored > depth ? stored : depth;
}

static inline void enter(hot_stream *hot, uint32_t function, uint64_t stack)
{
    *hot->event++ = (sj_event){.ticks = hot->ticks, .function = function};
    sj_frame *frame = &hot->frames[hot->depth++];
    frame->call_index = hot->next_call++;
    frame->start_ticks = hot->ticks;
    frame->child_ticks = 0;
    frame->stack = stack;
    frame->function = function;
    frame->flags = 0;
    hot->innermost = stack;
}

static inline void leave(hot_stream *hot)
{
    *hot->event++ = (sj_event){.ticks = hot->ticks};
    const sj_frame *frame = &hot->frames[--hot->depth];
    hot->innermost = UINT64_MAX;
    if (hot->depth > 0) {
        sj_frame *caller = &hot->frames[hot->depth - 1];
        caller->child_ticks += hot->ticks - frame->start_ticks;
        hot->innermost = caller->stack;
    }
}

static size_t take_ordinary(const sj_open_stack *stream, const sj_record_run *run,
                            const sj_record *records, size_t count, hot_stream *out)
{
    const uint64_t low = run->stack_low;
    const uint64_t span = run->stack_span;
    const uint64_t now = run->now_ticks;
    const uint32_t least_depth = ordinary_depth(stream);
    const uint32_t most_depth = stream->frame_capacity;
    hot_stream hot = *out;
    size_t taken = 0;
    for (; taken < count; taken++) {
        const sj_record *record = &records[taken];
        const uint32_t tag = sj_record_tag(record);
        const uint64_t stack = sj_record_stack(record);
        const uint64_t ticks = hot.ticks + ((sj_record_ticks48(record) - hot.ticks) & TICKS48_MASK);
        const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
        if (ticks > now || stack - low >= span || function == 0) {
            break; /* a clock that went back seems to be far ahead */
        }
        if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER) {
            if (stack >= hot.innermost || hot.depth == most_depth) {
                break;
            }
            hot.ticks = ticks;
            enter(&hot, function, stack);
        } else {
            if (tag >> SJ_RECORD_FUNCTION_BITS != SJ_RECORD_LEAVE || stack != hot.innermost ||
                hot.depth <= least_depth || hot.frames[hot.depth - 1].function != function) {
                break;
            }
            hot.ticks = ticks;
            leave(&hot);
        }
    }
    *out = hot;
    return taken;
}

size_t sj_open_stack_take(sj_open_stack *stream, const sj_record_run *run, const sj_record *records,
                          size_t count, uint64_t *last_ticks)
{
    const size_t room = stream->event_capacity - stream->event_count;
    if (stream->trust.uncertain_depth > 0 || stream->trust.truncated_function != 0 || room == 0 ||
        run->now_ticks - *last_ticks > TICKS48_MASK / 2) {
        return 0;
    }
    hot_stream hot = {.frames = stream->frames,
                      .depth = stream->depth,
                      .event = stream->events + stream->event_count,
                      .next_call = stream->next_call,
                      .innermost =
                          stream->depth > 0 ? stream->frames[stream->depth - 1].stack : UINT64_MAX,
                      .ticks = *last_ticks};
    const size_t taken = take_ordinary(stream, run, records, count < room ? count : room, &hot);
    if (taken == 0) {
        return 0;
    }
    const uint64_t entered = hot.next_call - stream->next_call;
    stream->context->counters.calls += entered;
    stream->context->counters.returned += taken - entered;
    stream->context->counters.records += taken;
    stream->depth = hot.depth;
    stream->event_count += (uint32_t)taken;
    stream->next_call = hot.next_call;
    stream->last_ticks = hot.ticks;
    *last_ticks = hot.ticks;
    return taken;
}
