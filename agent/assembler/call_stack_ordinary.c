/* Design notes.
 *
 * Most records enter a callee of the innermost call or leave the innermost call. They lie on the
 * thread's own stack, and no gap concerns an open call. This loop handles only those records. It
 * keeps the state of the stream in registers and decides each record by a few compares.
 *
 * Any other record ends the loop. Before that, the loop changes nothing for this record, except
 * that it may mark the head of a tail-call chain. The functions of call_stack.h handle the record.
 * For ordinary records they must give the same results as the loop; the assembler's tests compare
 * the two. The loop handles both records of a tail call or neither of them. */
#include "agent/assembler/call_stack.h"

#include "agent/assembler/tail_calls.h"
#include "agent/assembler/untimed_entry.h"

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* The state that the loop changes. */
typedef struct hot_stream {
    sj_stack_frame *top; /* one past the innermost open call */
    sj_event *event;     /* the next event to write */
    /* offset of the innermost call's stack address from the low end of the stack; if no call is
     * open, the size of the stack */
    uint64_t offset;
    uint64_t next_call;            /* number of the next call */
    uint64_t ticks;                /* time of the latest record */
    uint64_t jumped, ended_jumped; /* counts to add to the assembler's counters */
} hot_stream;

static inline uint32_t leave_tag(const sj_stack_frame *frame)
{
    return (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS | frame->function;
}

static inline void enter(hot_stream *hot, uint32_t function, uint64_t stack, uint32_t tail_call,
                         bool is_untimed)
{
    sj_stack_frame *frame = hot->top++;
    sj_event *event = hot->event++;
    event->ticks = hot->ticks;
    event->function = function;
    event->tail_call = tail_call | (uint32_t)is_untimed * SJ_EVENT_UNTIMED;
    frame->call_index = hot->next_call++;
    frame->start_ticks = hot->ticks;
    frame->child_ticks = 0;
    frame->stack = stack;
    frame->jumped_ticks = 0;
    frame->function = function;
    frame->flags = (uint32_t)is_untimed * SJ_CALL_UNTIMED;
}

/* Ends the innermost call. `outermost` is the first frame of the stream. `low` and `span` are the
 * low end and the size of the stack. */
static inline void leave(hot_stream *hot, const sj_stack_frame *outermost, uint64_t low,
                         uint64_t span)
{
    const sj_stack_frame *frame = --hot->top;
    sj_event *event = hot->event++;
    event->ticks = hot->ticks;
    event->function = SJ_EVENT_LEAVE;
    event->tail_call = 0;
    hot->offset = span;
    if (frame != outermost) {
        sj_stack_frame *caller = hot->top - 1;
        caller->child_ticks += hot->ticks - frame->start_ticks;
        hot->offset = caller->stack - low;
    }
}

/* Returns the number of callers that have jumped and end together with the innermost call. */
static inline size_t count_chain(const hot_stream *hot, const sj_stack_frame *outermost)
{
    const sj_stack_frame *last = hot->top - 1;
    size_t count = 0;
    while (last - count > outermost && last[-1 - (ptrdiff_t)count].jumped_ticks != 0) {
        count++;
    }
    return count;
}

/* Ends the innermost call and the callers that have jumped. Each record may write one event;
 * `*free_events` is the number of further events that still fit. The function subtracts those that
 * it writes. Returns false, and changes nothing, if the events do not suffice or a frame before
 * `least` would end. */
static __attribute__((noinline)) bool leave_chain(hot_stream *hot, const sj_stack_frame *outermost,
                                                  const sj_stack_frame *least,
                                                  const sj_record_run *run, uint64_t ticks,
                                                  size_t *free_events)
{
    const size_t jumped = count_chain(hot, outermost);
    if (jumped > *free_events || hot->top - jumped <= least) {
        return false;
    }
    *free_events -= jumped;
    hot->ticks = ticks;
    hot->ended_jumped += jumped;
    for (size_t i = 0; i <= jumped; i++) {
        leave(hot, outermost, run->stack_low, run->stack_span);
    }
    return true;
}

/* Handles an exit by a tail call at `ticks` together with `entry`, the record after the exit.
 * Returns false if the slow path must handle both records. */
static __attribute__((noinline)) bool
feed_tail_call(hot_stream *hot, sj_stack_frame *outermost, const sj_stack_frame *least,
               const sj_stack_frame *end, const sj_record_run *run, const sj_record *entry,
               uint64_t ticks, size_t *free_events)
{
    const uint32_t function = sj_record_tag(entry);
    const uint64_t entered =
        sj_time_steps_floor(&run->steps, (ticks & ~TICKS48_MASK) | sj_record_ticks48(entry));
    const uint32_t depth = (uint32_t)(hot->top - outermost);
    if (function - 1 >= SJ_RECORD_FUNCTION_MASK || sj_record_stack(entry) != hot->top[-1].stack ||
        entered < ticks || entered > run->now_ticks || hot->top == end) {
        return false;
    }
    const uint32_t kept = sj_tail_chain_keep(outermost, depth, function);
    const uint32_t ended = depth - kept;
    if (ended > *free_events || (ended > 0 && outermost + kept < least)) {
        return false; /* the slow path marks the same head again */
    }
    *free_events -= ended;
    hot->jumped++;
    hot->ended_jumped += ended;
    hot->top[-1].jumped_ticks = entered > 0 ? entered : 1;
    hot->ticks = entered;
    const uint64_t stack = hot->top[-1].stack;
    for (uint32_t i = 0; i < ended; i++) {
        leave(hot, outermost, run->stack_low, run->stack_span);
    }
    hot->offset = stack - run->stack_low;
    enter(hot, function, stack, 1 + ended, false);
    return true;
}

/* True if the exit of the innermost call also ends its caller, which has jumped to it. */
static inline bool ends_chain(const hot_stream *hot, const sj_stack_frame *outermost)
{
    return hot->top - 1 > outermost && hot->top[-2].jumped_ticks != 0;
}

/* Handles an exit of the innermost call that belongs to a tail call: the call jumps, or it ends a
 * chain. Of `count` records, the first one is the exit. Returns how many records it has handled, or
 * 0 if the slow path must handle them. */
static __attribute__((noinline)) size_t feed_jump(hot_stream *hot, const sj_call_stack *stream,
                                                  const sj_record_run *run,
                                                  const sj_record *records, size_t count,
                                                  uint64_t ticks, size_t *free_events)
{
    sj_stack_frame *outermost = stream->frames;
    const sj_stack_frame *least = outermost + sj_call_stack_ordinary_depth(stream);
    const sj_stack_frame *end = outermost + stream->frame_capacity;
    const uint64_t offset = sj_record_stack(&records[0]) - run->stack_low;
    if (offset == hot->offset) {
        return leave_chain(hot, outermost, least, run, ticks, free_events) ? 1 : 0;
    }
    if (offset != hot->offset + SJ_STACK_TAIL_CALL || count < 2) {
        return 0;
    }
    return feed_tail_call(hot, outermost, least, end, run, &records[1], ticks, free_events) ? 2 : 0;
}

static size_t feed_ordinary(const sj_call_stack *stream, const sj_record_run *run,
                            const sj_record *records, size_t count, size_t free_events,
                            hot_stream *out)
{
    sj_stack_frame *outermost = stream->frames;
    const sj_stack_frame *least = outermost + sj_call_stack_ordinary_depth(stream);
    const sj_stack_frame *end = outermost + stream->frame_capacity;
    const uint64_t low = run->stack_low;
    const uint64_t span = run->stack_span;
    const uint64_t now = run->now_ticks;
    const sj_time_steps steps = run->steps;
    hot_stream hot = *out;
    const uint64_t epoch = hot.ticks & ~TICKS48_MASK;
    const sj_record *record = records;
    const sj_record *stop = records + (count < free_events ? count : free_events);
    while (record != stop) {
        const uint32_t tag = sj_record_tag(record);
        const uint64_t stack = sj_record_stack(record);
        const uint64_t ticks = sj_time_steps_floor(&steps, epoch | sj_record_ticks48(record));
        if (ticks < hot.ticks || ticks > now) {
            break;
        }
        if (tag - 1 < SJ_RECORD_FUNCTION_MASK) { /* an ENTER of a function */
            const uint64_t entered = stack & ~(uint64_t)SJ_UNTIMED_ENTRY;
            if (entered - low >= hot.offset || hot.top == end) {
                break;
            }
            hot.offset = entered - low;
            hot.ticks = ticks;
            enter(&hot, tag, entered, 0, entered != stack);
            record++;
            continue;
        }
        if (hot.top <= least || tag != leave_tag(hot.top - 1)) {
            break;
        }
        if (stack - low == hot.offset && !ends_chain(&hot, outermost)) {
            hot.ticks = ticks;
            leave(&hot, outermost, low, span);
            record++;
            continue;
        }
        hot_stream jumping = hot; /* a copy, so that `hot` stays in registers */
        const size_t left = count - (size_t)(record - records);
        size_t spare = free_events - (size_t)(record - records) - 1;
        const size_t handled = feed_jump(&jumping, stream, run, record, left, ticks, &spare);
        if (handled == 0) {
            break;
        }
        hot = jumping;
        record += handled;
        free_events = spare + (size_t)(record - records);
        stop = records + (count < free_events ? count : free_events);
    }
    *out = hot;
    return (size_t)(record - records);
}

/* True if the loop may start. All of these must hold:
 *   * the open calls lie within the known bounds of the stack
 *   * no open call is uncertain
 *   * the innermost call has not jumped
 *   * the last record is recent enough for 48 bits of a time to be unambiguous */
static bool is_ordinary(const sj_call_stack *stream, const sj_record_run *run, uint64_t last_ticks)
{
    const bool lies_within =
        stream->depth == 0 ||
        (stream->frames[0].stack - run->stack_low < run->stack_span &&
         stream->frames[stream->depth - 1].stack - run->stack_low < run->stack_span);
    return lies_within && stream->trust.uncertain_depth == 0 && !sj_call_stack_has_jumped(stream) &&
           run->now_ticks - last_ticks <= TICKS48_MASK / 2;
}

size_t sj_call_stack_feed_ordinary(sj_call_stack *stream, const sj_record_run *run,
                                   const sj_record *records, size_t count, uint64_t *last_ticks)
{
    const size_t free_events = stream->event_capacity - stream->event_count;
    if (free_events == 0 || !is_ordinary(stream, run, *last_ticks)) {
        return 0;
    }
    hot_stream hot = {.top = stream->frames + stream->depth,
                      .event = stream->events + stream->event_count,
                      .offset = stream->depth > 0
                                    ? stream->frames[stream->depth - 1].stack - run->stack_low
                                    : run->stack_span,
                      .next_call = stream->next_call,
                      .ticks = *last_ticks};
    const size_t taken = feed_ordinary(stream, run, records, count, free_events, &hot);
    if (taken == 0) {
        return 0;
    }
    const uint64_t entered = hot.next_call - stream->next_call;
    stream->context->counters.calls += entered;
    stream->context->counters.returned += taken - entered - hot.jumped;
    stream->context->counters.jumped += hot.jumped;
    stream->context->counters.ended_jumped += hot.ended_jumped;
    stream->jumped_count += (uint32_t)hot.jumped;
    stream->ended_jumped_count += (uint32_t)hot.ended_jumped;
    stream->context->counters.records += taken;
    stream->depth = (uint32_t)(hot.top - stream->frames);
    stream->event_count = (uint32_t)(hot.event - stream->events);
    stream->next_call = hot.next_call;
    stream->last_ticks = hot.ticks;
    *last_ticks = hot.ticks;
    return taken;
}
