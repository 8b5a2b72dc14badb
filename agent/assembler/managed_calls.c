#include "agent/assembler/managed_calls.h"

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* Returns the address of a managed call that is entered now. */
static uint64_t address_of_next(const sj_call_stack *stream, const sj_record_run *run)
{
    return stream->depth > 0 ? sj_managed_address(stream->frames[stream->depth - 1].stack)
                             : sj_managed_base(run);
}

/* Ends the outermost call that an exception left (sj_managed_pending) and all calls inside it.
 * Keeps the native calls among them in `overtaken`, because their exits may still arrive. Does
 * nothing if no such call is open. */
static sj_status settle_thrown(sj_call_stack *stream, uint64_t ticks)
{
    const uint32_t depth = sj_managed_pending(stream);
    while (depth != 0 && stream->depth >= depth) {
        const sj_stack_frame *innermost = &stream->frames[stream->depth - 1];
        if (!sj_managed_is_call(innermost->stack)) {
            stream->overtaken[stream->overtaken_count++ % SJ_OVERTAKEN_CALLS] =
                (sj_overtaken_call){.stack = innermost->stack, .function = innermost->function};
        }
        SJ_TRY(sj_call_stack_end_unseen(stream, ticks));
    }
    stream->thrown_depth = 0;
    return SJ_OK;
}

sj_status sj_managed_enter(sj_call_stack *stream, const sj_record_run *run, uint32_t function,
                           uint64_t ticks)
{
    SJ_TRY(sj_call_stack_end_jumped(stream));
    SJ_TRY(settle_thrown(stream, ticks));
    const uint64_t stack = address_of_next(stream, run);
    return sj_call_stack_push(stream, function, stack, ticks, 0);
}

static bool is_call_of(const sj_stack_frame *frame, uint32_t function)
{
    return frame->function == function && sj_managed_is_call(frame->stack);
}

/* True for a native call of `function`. A call that ended by a tail call does not count, because
 * its stack frame is gone. */
static bool is_native_call_of(const sj_stack_frame *frame, uint32_t function)
{
    return frame->function == function && !sj_managed_is_call(frame->stack) &&
           frame->jumped_ticks == 0;
}

/* Returns the depth of the innermost matching call among the outermost `depth` calls, or 0 if there
 * is none. Searches SJ_MANAGED_REACH calls at most. */
static uint32_t find_call(const sj_call_stack *stream, uint32_t depth, uint32_t function,
                          bool (*is_it)(const sj_stack_frame *frame, uint32_t function))
{
    const uint32_t reach = depth < SJ_MANAGED_REACH ? depth : SJ_MANAGED_REACH;
    for (uint32_t i = 0; i < reach; i++) {
        if (is_it(&stream->frames[depth - i - 1], function)) {
            return depth - i;
        }
    }
    return 0;
}

/* Counts an exit that ended no open call, and adds a gap for it. If the entry of `function` may be
 * missing, the exit counts as interrupted instead. */
static sj_status note_orphan(sj_call_stack *stream, uint32_t function, uint64_t ticks)
{
    const sj_stream_context *context = stream->context;
    if (context->may_lack_entry != NULL &&
        context->may_lack_entry(context->entry_context, function)) {
        stream->context->counters.interrupted++;
        return SJ_OK;
    }
    stream->context->counters.orphan_exits++;
    const sj_gap gap = {.reason = SJ_GAP_ORPHAN,
                        .events = 1,
                        .start_ticks = stream->last_ticks,
                        .end_ticks = ticks};
    return sj_call_stack_gap(stream, &gap);
}

static bool has_native_above(const sj_call_stack *stream, uint32_t depth)
{
    while (depth < stream->depth && sj_managed_is_call(stream->frames[depth].stack)) {
        depth++;
    }
    return depth < stream->depth;
}

/* Updates the length of the longest run of exits that one exception caused. Another entry or exit
 * between them ends the run. */
static void count_throw(sj_call_stack *stream)
{
    const bool continues = stream->thrown_run != 0 && stream->thrown_next == stream->next_call &&
                           stream->thrown_left == stream->depth;
    uint64_t *longest = &stream->context->counters.longest_throw;
    stream->thrown_run = continues ? stream->thrown_run + 1 : 1;
    *longest = stream->thrown_run > *longest ? stream->thrown_run : *longest;
}

/* Handles an exit by an exception. `how` is the sj_managed_stack of the LEAVE. Ends the innermost
 * call of `function` and the calls inside it. If native calls inside it are open, or if another
 * call waits for settle_thrown, the call waits for settle_thrown, too. If no call of `function` is
 * open, the exit is an orphan only for SJ_MANAGED_THROWN. */
static sj_status leave_thrown(sj_call_stack *stream, uint32_t function, uint64_t how,
                              uint64_t ticks)
{
    const uint32_t pending = sj_managed_pending(stream);
    const uint32_t depth = find_call(stream, pending != 0 ? pending - 1 : stream->depth, function,
                                     how == SJ_MANAGED_PASSED ? is_native_call_of : is_call_of);
    if (depth == 0 && how != SJ_MANAGED_THROWN) {
        stream->context->counters.interrupted++;
        return SJ_OK;
    }
    if (depth == 0) {
        return note_orphan(stream, function, ticks);
    }
    stream->thrown_call = stream->frames[depth - 1].call_index;
    if (pending != 0 || has_native_above(stream, depth)) {
        stream->thrown_depth = depth;
        stream->context->counters.thrown++;
        return SJ_OK;
    }
    if (how == SJ_MANAGED_THROWN) {
        count_throw(stream);
    }
    while (stream->depth > depth) {
        SJ_TRY(sj_call_stack_end_unseen(stream, ticks));
    }
    const sj_status status = sj_call_stack_throw(stream, ticks);
    stream->thrown_next = stream->next_call;
    stream->thrown_left = stream->depth;
    return status;
}

sj_status sj_managed_leave(sj_call_stack *stream, uint32_t function, uint64_t stack, uint64_t ticks)
{
    SJ_TRY(sj_call_stack_end_jumped(stream));
    if (stack != SJ_MANAGED_CALL) {
        return leave_thrown(stream, function, stack, ticks);
    }
    SJ_TRY(settle_thrown(stream, ticks));
    const uint32_t depth = find_call(stream, stream->depth, function, is_call_of);
    if (depth == 0) {
        return note_orphan(stream, function, ticks);
    }
    while (stream->depth > depth) {
        SJ_TRY(sj_call_stack_end_unseen(stream, ticks));
    }
    if (sj_call_stack_full(stream)) {
        SJ_TRY(sj_call_stack_grow(stream));
    }
    stream->context->counters.returned++;
    stream->returned_call = stream->frames[stream->depth - 1].call_index;
    sj_call_stack_pop(stream, ticks);
    return SJ_OK;
}

/* Handles an entry, or an exit of the innermost call by return. Returns false, and changes nothing,
 * if sj_managed_enter or sj_managed_leave must handle the record: there is no space for a frame,
 * the depth is at most `least`, or the exit does not return from the innermost call. */
static inline bool feed_one(sj_call_stack *stream, const sj_record_run *run, uint32_t least,
                            const sj_record *record, uint64_t ticks)
{
    const uint32_t tag = sj_record_tag(record);
    if (tag - 1 < SJ_RECORD_FUNCTION_MASK) { /* an ENTER (0) of a function that is not 0 */
        if (stream->depth == stream->frame_capacity) {
            return false;
        }
        const uint64_t stack = address_of_next(stream, run);
        stream->events[stream->event_count++] = (sj_event){.ticks = ticks, .function = tag};
        stream->frames[stream->depth++] = (sj_stack_frame){.call_index = stream->next_call++,
                                                           .start_ticks = ticks,
                                                           .stack = stack,
                                                           .function = tag};
        return true;
    }
    const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
    if (tag >> SJ_RECORD_FUNCTION_BITS != SJ_RECORD_LEAVE || stream->depth <= least ||
        sj_record_stack(record) != SJ_MANAGED_CALL ||
        !is_call_of(&stream->frames[stream->depth - 1], function)) {
        return false;
    }
    const sj_stack_frame *frame = &stream->frames[--stream->depth];
    stream->events[stream->event_count++] = (sj_event){.ticks = ticks};
    if (stream->depth > 0) {
        stream->frames[stream->depth - 1].child_ticks += ticks - frame->start_ticks;
    }
    return true;
}

size_t sj_managed_feed_ordinary(sj_call_stack *stream, const sj_record_run *run,
                                const sj_record *records, size_t count, uint64_t *last_ticks)
{
    const size_t free_events = stream->event_capacity - stream->event_count;
    if (free_events == 0 || sj_managed_pending(stream) != 0 || sj_call_stack_has_jumped(stream) ||
        stream->trust.uncertain_depth != 0 || run->now_ticks - *last_ticks > TICKS48_MASK / 2) {
        return 0;
    }
    const uint32_t least = sj_call_stack_ordinary_depth(stream);
    const uint64_t epoch = *last_ticks & ~TICKS48_MASK;
    const uint64_t first_call = stream->next_call;
    const size_t most = count < free_events ? count : free_events;
    uint64_t last = *last_ticks;
    size_t taken = 0;
    for (; taken < most; taken++) {
        const uint64_t ticks =
            sj_time_steps_floor(&run->steps, epoch | sj_record_ticks48(&records[taken]));
        if (!sj_record_is_managed(sj_record_stack(&records[taken])) || ticks < last ||
            ticks > run->now_ticks || !feed_one(stream, run, least, &records[taken], ticks)) {
            break;
        }
        last = ticks;
    }
    if (taken != 0) {
        const uint64_t entered = stream->next_call - first_call;
        stream->context->counters.calls += entered;
        stream->context->counters.returned += taken - entered;
        stream->context->counters.records += taken;
        stream->last_ticks = last;
        *last_ticks = last;
    }
    return taken;
}
