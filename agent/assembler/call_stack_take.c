/* Design notes.
 * Nearly all records of a thread enter or leave its innermost call, on its own stack, with no gap
 * that still concerns an open call. This loop takes those and no others: the state of the stream
 * lives in registers and each record is decided by a few compares. Whatever is not ordinary ends it
 * before it has touched anything of that record, and goes through the functions of open_stack.h,
 * which know every case; both must do the same, which the assembler's tests compare. */
#include "agent/assembler/call_stack.h"

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* What the loop changes. */
typedef struct hot_stream {
    sj_stack_frame *top; /* behind the innermost open call */
    uint64_t room;       /* of the stack below that call: its address, from the stack's end on */
    uint64_t next_call;  /* number */
    uint64_t ticks;      /* of the last record */
} hot_stream;

static inline uint32_t leave_tag(const sj_stack_frame *frame)
{
    return (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS | frame->function;
}

static inline void enter(hot_stream *hot, sj_event *event, uint32_t function, uint64_t stack)
{
    sj_stack_frame *frame = hot->top++;
    event->ticks = hot->ticks;
    event->function = function;
    frame->call_index = hot->next_call++;
    frame->start_ticks = hot->ticks;
    frame->child_ticks = 0;
    frame->stack = stack;
    frame->function = function;
    frame->flags = 0;
}

/* `outermost` is where the frames begin. */
static inline void leave(hot_stream *hot, sj_event *event, const sj_stack_frame *outermost,
                         const sj_record_run *run)
{
    const sj_stack_frame *frame = --hot->top;
    event->ticks = hot->ticks;
    event->function = SJ_EVENT_LEAVE;
    hot->room = run->stack_span;
    if (frame != outermost) {
        sj_stack_frame *caller = hot->top - 1;
        caller->child_ticks += hot->ticks - frame->start_ticks;
        hot->room = caller->stack - run->stack_low;
    }
}

static size_t take_ordinary(const sj_call_stack *stream, const sj_record_run *run,
                            const sj_record *records, size_t count, hot_stream *out)
{
    sj_event *events = stream->events + stream->event_count;
    sj_stack_frame *outermost = stream->frames;
    const sj_stack_frame *least = outermost + sj_call_stack_ordinary_depth(stream);
    const sj_stack_frame *end = outermost + stream->frame_capacity;
    const uint64_t low = run->stack_low;
    const uint64_t now = run->now_ticks;
    hot_stream hot = *out;
    const uint64_t epoch = hot.ticks & ~TICKS48_MASK;
    size_t taken = 0;
    for (; taken < count; taken++) {
        const uint32_t tag = sj_record_tag(&records[taken]);
        const uint64_t stack = sj_record_stack(&records[taken]);
        const uint64_t ticks = epoch | sj_record_ticks48(&records[taken]);
        if (ticks < hot.ticks || ticks > now) {
            break;
        }
        if (tag - 1 < SJ_RECORD_FUNCTION_MASK) { /* an ENTER of a function */
            if (stack - low >= hot.room || hot.top == end) {
                break;
            }
            hot.room = stack - low;
            hot.ticks = ticks;
            enter(&hot, &events[taken], tag, stack);
        } else {
            if (hot.top <= least || stack - low != hot.room || tag != leave_tag(hot.top - 1)) {
                break;
            }
            hot.ticks = ticks;
            leave(&hot, &events[taken], outermost, run);
        }
    }
    *out = hot;
    return taken;
}

/* is_ordinary: nothing but the records can end a run of them, and all open calls lie in the bounds
 * of the stack, which are known. */
static bool is_ordinary(const sj_call_stack *stream, const sj_record_run *run, uint64_t last_ticks)
{
    const bool lies_within =
        stream->depth == 0 ||
        (stream->frames[0].stack - run->stack_low < run->stack_span &&
         stream->frames[stream->depth - 1].stack - run->stack_low < run->stack_span);
    return lies_within && stream->trust.uncertain_depth == 0 &&
           stream->trust.truncated_function == 0 && run->now_ticks - last_ticks <= TICKS48_MASK / 2;
}

size_t sj_call_stack_take(sj_call_stack *stream, const sj_record_run *run, const sj_record *records,
                          size_t count, uint64_t *last_ticks)
{
    const size_t room = stream->event_capacity - stream->event_count;
    if (room == 0 || !is_ordinary(stream, run, *last_ticks)) {
        return 0;
    }
    hot_stream hot = {.top = stream->frames + stream->depth,
                      .room = stream->depth > 0
                                  ? stream->frames[stream->depth - 1].stack - run->stack_low
                                  : run->stack_span,
                      .next_call = stream->next_call,
                      .ticks = *last_ticks};
    const size_t taken = take_ordinary(stream, run, records, count < room ? count : room, &hot);
    if (taken == 0) {
        return 0;
    }
    const uint64_t entered = hot.next_call - stream->next_call;
    stream->context->counters.calls += entered;
    stream->context->counters.returned += taken - entered;
    stream->context->counters.records += taken;
    stream->depth = (uint32_t)(hot.top - stream->frames);
    stream->event_count += (uint32_t)taken;
    stream->next_call = hot.next_call;
    stream->last_ticks = hot.ticks;
    *last_ticks = hot.ticks;
    return taken;
}
