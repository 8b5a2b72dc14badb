/* Design notes.
 *
 * The order of the slots counts, not that of the times. A record can have an earlier time than the
 * record before it for two reasons. A signal handler recorded calls after the probe had read the
 * clock and before it reserved its slot. Or the thread moved to a processor whose clock is behind.
 * The record then gets the time of the record before.
 *
 * A gap found in the records belongs to the stack that the thread was on. The thread's other stacks
 * get the gap when the thread returns to them (`gap_serial`). So a gap costs the same, however many
 * coroutines are suspended. */
#include "agent/assembler/assembler.h"

#include "agent/assembler/call_stack.h"
#include "agent/assembler/call_values.h"
#include "agent/assembler/managed_calls.h"
#include "agent/assembler/stack_map.h"
#include "agent/assembler/untimed_entry.h"
#include "agent/assembler/value_queue.h"

#include <stdlib.h>
#include <string.h>

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

enum {
    DEFAULT_BLOCK_EVENTS = 128 * 1024,
    MAX_FOREIGN_STACKS = 1024 /* above it, streams without open calls are ended */
};

typedef struct timed_record {
    uint64_t ticks;
    uint64_t stack;
    uint32_t tag;
    bool jumps;      /* an exit by a tail call */
    bool is_untimed; /* its time is an estimate */
} timed_record;

struct sj_assembler {
    sj_stream_context context;
    sj_record_run run; /* the thread's own stack; a span of 0: unknown */
    /* stack of a running signal handler, inside the thread's own stack */
    sj_alternate_stack alternate;
    uint64_t start_ticks;
    uint64_t last_ticks;
    sj_call_stack *own;     /* stream of the thread's own stack; NULL before its first record */
    sj_call_stack *current; /* stream that the thread is on */
    sj_stack_map foreign;
    uint32_t foreign_limit;
    bool has_untimed_exits;
    uint64_t gap_serial;
    sj_gap last_gap;  /* the gap that gap_serial counted last, for stacks that get it later */
    bool gap_pending; /* `pending` is a gap whose end is not known */
    sj_gap pending;
    uint64_t paused_since; /* 0: recording is on */
    sj_value_queue values; /* values that wait for their calls */
};

void sj_assembler_set_steps(sj_assembler *assembler, uint32_t clock_step, uint32_t kept_step)
{
    const uint32_t step = kept_step > clock_step ? kept_step : clock_step;
    assembler->context.clock_step = step > 0 ? step : 1;
    assembler->run.steps = sj_time_steps_of(kept_step);
}

void sj_assembler_set_optional_entries(sj_assembler *assembler,
                                       bool (*may_lack_entry)(void *context, uint32_t function),
                                       void *context)
{
    assembler->context.may_lack_entry = may_lack_entry;
    assembler->context.entry_context = context;
}

/* Rounds the time of an event that has no record. */
static uint64_t round_time(const sj_assembler *assembler, uint64_t ticks)
{
    return sj_time_steps_floor(&assembler->run.steps, ticks);
}

sj_status sj_assembler_new(const sj_assembler_options *options, const sj_assembler_sink *sink,
                           sj_assembler **assembler)
{
    if (options->block_events > SJ_BLOCK_MAX_EVENTS || options->encoder == NULL ||
        options->stack_high < options->stack_low) {
        return SJ_EINVAL;
    }
    sj_assembler *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->context.session = options->session;
    made->context.encoder = options->encoder;
    made->context.sink = *sink;
    made->context.value_rules = options->value_rules;
    made->context.is_forked = options->is_forked;
    made->context.block_events =
        options->block_events > 0 ? options->block_events : DEFAULT_BLOCK_EVENTS;
    sj_assembler_set_steps(made, options->clock_step, options->kept_step);
    made->run.stack_low = options->stack_low;
    made->run.stack_span = options->stack_high - options->stack_low;
    made->start_ticks = options->start_ticks;
    made->last_ticks = round_time(made, options->start_ticks);
    made->foreign_limit = MAX_FOREIGN_STACKS;
    made->has_untimed_exits = options->has_untimed_exits;
    *assembler = made;
    return SJ_OK;
}

void sj_assembler_free(sj_assembler *assembler)
{
    if (assembler == NULL) {
        return;
    }
    sj_call_stack_free(assembler->own);
    sj_stack_map_deinit(&assembler->foreign);
    sj_value_queue_deinit(&assembler->values);
    free(assembler->context.output);
    free(assembler);
}

static sj_status ensure_own(sj_assembler *assembler, uint64_t stack, uint64_t ticks)
{
    if (assembler->own == NULL) {
        SJ_TRY(sj_call_stack_new(&assembler->context, stack, true, ticks, &assembler->own));
        assembler->own->gap_serial = assembler->gap_serial;
    }
    return SJ_OK;
}

/* Adds to a stream the gaps that happened while the thread was on other stacks. */
static sj_status catch_up(sj_assembler *assembler, sj_call_stack *stream)
{
    if (stream->gap_serial == assembler->gap_serial) {
        return SJ_OK;
    }
    const bool is_only_gap = stream->gap_serial + 1 == assembler->gap_serial;
    stream->gap_serial = assembler->gap_serial;
    if (stream->depth == 0) {
        return SJ_OK;
    }
    sj_gap gap = assembler->last_gap;
    gap.calls = 0; /* counted in the stream that the thread was on */
    gap.events = 0;
    SJ_TRY(sj_call_stack_gap(stream, &gap));
    /* The stream missed earlier gaps, too. So all its calls were uncertain before the latest gap.
     */
    stream->uncertain_before = is_only_gap ? stream->uncertain_before : UINT32_MAX;
    return SJ_OK;
}

static sj_status note_gap(sj_assembler *assembler, const sj_gap *gap)
{
    if (assembler->current == NULL) {
        SJ_TRY(ensure_own(assembler, assembler->run.stack_low + assembler->run.stack_span,
                          gap->start_ticks));
        assembler->current = assembler->own;
    }
    /* Suspended stacks get only the latest gap. A wait must not replace a loss that they have not
     * been given yet. */
    const bool hides = gap->reason == SJ_GAP_WAITED && assembler->gap_serial > 0 &&
                       assembler->last_gap.reason != SJ_GAP_WAITED;
    if (!hides) {
        assembler->last_gap = *gap;
    }
    assembler->gap_serial++;
    assembler->current->gap_serial = assembler->gap_serial;
    return sj_call_stack_gap(assembler->current, gap);
}

static sj_status close_gap(sj_assembler *assembler, uint64_t end_ticks)
{
    if (!assembler->gap_pending) {
        return SJ_OK;
    }
    assembler->gap_pending = false;
    sj_gap gap = assembler->pending;
    gap.end_ticks = end_ticks > gap.start_ticks ? end_ticks : gap.start_ticks;
    if (gap.events < gap.calls) {
        gap.events = gap.calls;
    }
    assembler->context.counters.lost_calls += gap.calls;
    assembler->context.counters.lost_events += gap.events;
    return note_gap(assembler, &gap);
}

static sj_status begin_gap(sj_assembler *assembler, sj_gap_reason reason, uint64_t calls,
                           uint64_t events)
{
    sj_value_queue_clear(&assembler->values); /* their entries may be among the missing records */
    if (assembler->gap_pending && assembler->pending.reason != (uint32_t)reason) {
        SJ_TRY(close_gap(assembler, assembler->last_ticks));
    }
    if (!assembler->gap_pending) {
        assembler->gap_pending = true;
        assembler->pending = (sj_gap){.reason = reason, .start_ticks = assembler->last_ticks};
    }
    assembler->pending.calls += calls;
    assembler->pending.events += events;
    return SJ_OK;
}

static bool on_own_stack(const sj_assembler *assembler, uint64_t stack)
{
    return stack - assembler->run.stack_low < assembler->run.stack_span &&
           !sj_alternate_stack_has(&assembler->alternate, stack);
}

/* Ends the streams without open calls. Doubles the limit of streams if more than half of it remain.
 */
static sj_status retire_idle_stacks(sj_assembler *assembler)
{
    sj_stack_map *map = &assembler->foreign;
    uint32_t kept = 0;
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < map->count; i++) {
        sj_call_stack *stream = map->streams[i];
        if (status == SJ_OK && stream->depth == 0 && stream != assembler->current) {
            status = sj_call_stack_cut(stream, assembler->last_ticks, SJ_BLOCK_LAST);
            sj_call_stack_free(stream);
        } else {
            map->streams[kept++] = stream;
        }
    }
    map->count = kept;
    if (kept > assembler->foreign_limit / 2) {
        assembler->foreign_limit *= 2;
    }
    return status;
}

/* Makes `stream` the current stack. If the previous stack still has open calls, or `stream` is a
 * coroutine being resumed, other code ran inside its open calls. Their costs are then marked as not
 * known. A signal handler or a coroutine that has ended counts as part of the calls. */
static void switch_to(sj_assembler *assembler, sj_call_stack *stream)
{
    const sj_call_stack *before = assembler->current;
    if (before != NULL && before != stream && (before->depth > 0 || !stream->own_stack)) {
        sj_call_costs_distrust(&stream->costs);
    }
    assembler->current = stream;
}

/* Makes the stream of an address the current one. */
static sj_status switch_stack(sj_assembler *assembler, uint64_t stack, uint64_t ticks)
{
    sj_call_stack *stream;
    const bool bounds_known = assembler->run.stack_span > 0;
    if (on_own_stack(assembler, stack)) {
        SJ_TRY(ensure_own(assembler, stack, ticks));
        stream = assembler->own;
    } else {
        stream = sj_stack_map_find(&assembler->foreign, stack);
    }
    if (stream == NULL) {
        const bool first = !bounds_known && assembler->context.counters.streams == 0;
        if (assembler->foreign.count >= assembler->foreign_limit) {
            SJ_TRY(retire_idle_stacks(assembler));
        }
        SJ_TRY(sj_call_stack_new(&assembler->context, stack, first, ticks, &stream));
        stream->gap_serial = assembler->gap_serial;
        const sj_status added = sj_stack_map_add(&assembler->foreign, stream);
        if (added != SJ_OK) {
            sj_call_stack_free(stream);
            return added;
        }
    }
    switch_to(assembler, stream);
    return catch_up(assembler, stream);
}

static inline sj_status select_stack(sj_assembler *assembler, uint64_t stack, uint64_t ticks)
{
    if (assembler->current != NULL && assembler->current == assembler->own &&
        on_own_stack(assembler, stack)) {
        return SJ_OK;
    }
    return switch_stack(assembler, stack, ticks);
}

/* Makes the thread's own stack current. Managed records have no stack address and belong to this
 * stack. */
static sj_status select_own_stack(sj_assembler *assembler, uint64_t ticks)
{
    if (assembler->current != NULL && assembler->current == assembler->own) {
        return SJ_OK;
    }
    SJ_TRY(ensure_own(assembler, sj_managed_base(&assembler->run), ticks));
    switch_to(assembler, assembler->own);
    return catch_up(assembler, assembler->own);
}

static sj_status handle_unwound_note(sj_assembler *assembler, uint64_t stack, uint64_t ticks)
{
    sj_call_stack *stream = on_own_stack(assembler, stack)
                                ? assembler->own
                                : sj_stack_map_find(&assembler->foreign, stack);
    if (stream == NULL) {
        return SJ_OK;
    }
    assembler->current = stream;
    SJ_TRY(catch_up(assembler, stream));
    return sj_call_stack_unwind_to(stream, stack, false, ticks);
}

static sj_status handle_known_note(sj_assembler *assembler)
{
    sj_call_stack *stream = assembler->own;
    if (stream == NULL || stream->gap_serial != assembler->gap_serial) {
        return SJ_OK; /* the stream does not contain the gap yet */
    }
    return sj_call_stack_confirm_open(stream);
}

static sj_status handle_recording_note(sj_assembler *assembler, bool on, uint64_t ticks)
{
    if (!on) {
        assembler->paused_since = ticks > 0 ? ticks : 1;
        return SJ_OK;
    }
    if (assembler->paused_since == 0) {
        return SJ_OK;
    }
    const sj_gap gap = {
        .reason = SJ_GAP_PAUSED, .start_ticks = assembler->paused_since, .end_ticks = ticks};
    assembler->paused_since = 0;
    return note_gap(assembler, &gap);
}

static sj_status handle_waited_note(sj_assembler *assembler, uint64_t waited, uint64_t ticks)
{
    const sj_gap gap = {.reason = SJ_GAP_WAITED,
                        .start_ticks = ticks > waited ? ticks - waited : 0,
                        .end_ticks = ticks};
    return note_gap(assembler, &gap);
}

/* Ends the open calls of the handlers on the alternate stack, because the thread has left it. */
static sj_status end_alternate(sj_assembler *assembler, uint64_t ticks)
{
    const sj_alternate_stack ended = assembler->alternate;
    assembler->alternate = (sj_alternate_stack){.span = 0};
    for (uint32_t i = 0; i < assembler->foreign.count; i++) {
        sj_call_stack *stream = assembler->foreign.streams[i];
        if (stream->depth != 0 && sj_alternate_stack_has(&ended, stream->frames[0].stack)) {
            SJ_TRY(catch_up(assembler, stream));
            SJ_TRY(sj_call_stack_unwind_to(stream, UINT64_MAX, false, ticks));
        }
    }
    return SJ_OK;
}

static sj_status handle_alternate_note(sj_assembler *assembler, uint32_t note, uint64_t argument,
                                       uint64_t ticks)
{
    if (note == SJ_NOTE_ALTERNATE_LOW && argument == 0) {
        return end_alternate(assembler, ticks);
    }
    sj_alternate_stack_note(&assembler->alternate, note, argument);
    return SJ_OK;
}

static sj_status handle_note(sj_assembler *assembler, const timed_record *record)
{
    const uint64_t argument = record->stack;
    const uint32_t note = record->tag & SJ_RECORD_FUNCTION_MASK;
    assembler->context.counters.notes++;
    if (note == SJ_NOTE_DROPPED_CALLS) {
        return begin_gap(assembler, SJ_GAP_RING_FULL, argument, 0);
    }
    if (note == SJ_NOTE_DROPPED_EVENTS) {
        SJ_TRY(begin_gap(assembler, SJ_GAP_RING_FULL, 0, argument));
        return close_gap(assembler, record->ticks);
    }
    SJ_TRY(close_gap(assembler, record->ticks));
    switch (note) {
    case SJ_NOTE_WAITED:
        return handle_waited_note(assembler, argument, record->ticks);
    case SJ_NOTE_MARK_BEGIN:
    case SJ_NOTE_MARK_END:
        assembler->context.sink.mark(assembler->context.sink.context, (uint32_t)argument,
                                     note == SJ_NOTE_MARK_END, record->ticks);
        return SJ_OK;
    case SJ_NOTE_UNWOUND:
        return handle_unwound_note(assembler, argument, record->ticks);
    case SJ_NOTE_STACK_KNOWN:
        return handle_known_note(assembler);
    case SJ_NOTE_REQUEST: /* handled by the call filter */
        return SJ_OK;
    case SJ_NOTE_RECORDING:
        return handle_recording_note(assembler, argument != 0, record->ticks);
    case SJ_NOTE_ALTERNATE_LOW:
    case SJ_NOTE_ALTERNATE_HIGH:
        return handle_alternate_note(assembler, note, argument, record->ticks);
    default:
        assembler->context.counters.notes--;
        assembler->context.counters.bad_records++;
        return SJ_OK;
    }
}

/* Handles notes, and counts every other record as bad. */
static sj_status handle_note_or_bad(sj_assembler *assembler, const timed_record *record)
{
    const uint32_t function = record->tag & SJ_RECORD_FUNCTION_MASK;
    const uint32_t kind = record->tag >> SJ_RECORD_FUNCTION_BITS;
    if (kind == SJ_RECORD_NOTE && function != 0) {
        return handle_note(assembler, record);
    }
    assembler->context.counters.bad_records++;
    return SJ_OK;
}

static sj_status store_values(sj_assembler *assembler, const timed_record *record,
                              uint64_t call_index)
{
    const sj_valued_moment moment = {.call_index = call_index,
                                     .stack = record->stack,
                                     .ticks = record->ticks,
                                     .function = record->tag & SJ_RECORD_FUNCTION_MASK,
                                     .at_entry =
                                         record->tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER};
    return sj_call_values_store(assembler->current, &assembler->values, &moment);
}

/* Cuts the block if it may be too small for the waiting values. Worst case: each value is stored
 * once without a rule and once per matching rule, at entry and exit. A counter reading becomes four
 * values. If the function's types are known, one register or stack slot may become all values of
 * the function. A result may also belong to a call that jumped to this one. */
static sj_status reserve_values(const sj_assembler *assembler)
{
    const sj_value_rules *rules = assembler->context.value_rules;
    const size_t waiting = assembler->values.count + (rules != NULL ? rules->count : 0);
    return assembler->values.count == 0
               ? SJ_OK
               : sj_call_stack_reserve_values(assembler->current,
                                              2 * (4 * waiting + 2 * SJ_VALUES_PER_FUNCTION),
                                              4 * assembler->values.texts.total_bytes);
}

static sj_status handle_enter(sj_assembler *assembler, const timed_record *record)
{
    const uint32_t function = record->tag & SJ_RECORD_FUNCTION_MASK;
    sj_call_stack *stream = assembler->current;
    assembler->context.counters.calls++;
    SJ_TRY(reserve_values(assembler));
    SJ_TRY(sj_record_is_managed(record->stack)
               ? sj_managed_enter(stream, &assembler->run, function, record->ticks)
               : sj_call_stack_enter(stream, function, record->stack, record->ticks));
    if (record->is_untimed) {
        sj_call_stack_mark_untimed(stream);
    }
    return assembler->values.count == 0
               ? SJ_OK
               : store_values(assembler, record, stream->frames[stream->depth - 1].call_index);
}

/* Removes the values of an exit that matched no open call. */
static void discard_values(sj_assembler *assembler, const timed_record *record)
{
    const uint32_t function = record->tag & SJ_RECORD_FUNCTION_MASK;
    sj_block_value value;
    while (sj_value_queue_pop(&assembler->values, function, record->stack, false, &value)) {
    }
}

static sj_status handle_exit(sj_assembler *assembler, const timed_record *record)
{
    const uint32_t function = record->tag & SJ_RECORD_FUNCTION_MASK;
    sj_call_stack *stream = assembler->current;
    const uint64_t returned = assembler->context.counters.returned;
    const uint64_t thrown = assembler->context.counters.thrown;
    SJ_TRY(reserve_values(assembler));
    if (record->is_untimed) {
        sj_call_stack_mark_untimed_exit(stream, function, record->stack);
    }
    SJ_TRY(
        sj_record_is_managed(record->stack)
            ? sj_managed_leave(stream, function, record->stack, record->ticks)
            : sj_call_stack_leave(stream, function, record->stack, record->ticks, record->jumps));
    if (assembler->values.count != 0 && assembler->context.counters.thrown != thrown) {
        return store_values(assembler, record, stream->thrown_call);
    }
    if (assembler->values.count != 0 && assembler->context.counters.returned == returned &&
        sj_call_stack_has_jumped(stream) &&
        stream->frames[stream->depth - 1].function == function) {
        return store_values(assembler, record, stream->frames[stream->depth - 1].call_index);
    }
    if (assembler->context.counters.returned == returned) {
        discard_values(assembler, record);
        return SJ_OK;
    }
    return assembler->values.count == 0 ? SJ_OK
                                        : store_values(assembler, record, stream->returned_call);
}

/* Handles one record that is not a value. If its time is before the previous record's time, it gets
 * that time. */
static inline sj_status handle_record(sj_assembler *assembler, timed_record *record)
{
    if (record->ticks < assembler->last_ticks) {
        record->ticks = assembler->last_ticks;
    }
    const uint32_t function = record->tag & SJ_RECORD_FUNCTION_MASK;
    const uint32_t kind = record->tag >> SJ_RECORD_FUNCTION_BITS;
    const uint64_t ticks = record->ticks;
    if (kind > SJ_RECORD_LEAVE || function == 0) {
        const sj_status status = handle_note_or_bad(assembler, record);
        assembler->last_ticks = ticks;
        return status;
    }
    if (assembler->gap_pending) {
        SJ_TRY(close_gap(assembler, ticks));
    }
    assembler->last_ticks = ticks;
    if (record->stack == SJ_MANAGED_PASSED && assembler->own == NULL) {
        assembler->context.counters.interrupted++;
        discard_values(assembler, record);
        return SJ_OK;
    }
    if (assembler->alternate.span != 0 && !sj_record_is_managed(record->stack) &&
        on_own_stack(assembler, record->stack)) {
        SJ_TRY(end_alternate(assembler, ticks));
    }
    SJ_TRY(sj_record_is_managed(record->stack) ? select_own_stack(assembler, ticks)
                                               : select_stack(assembler, record->stack, ticks));
    return kind == SJ_RECORD_ENTER ? handle_enter(assembler, record)
                                   : handle_exit(assembler, record);
}

/* Extends a 48-bit time to the 64-bit time nearest to `now_ticks`. Clocks of two processors may
 * differ a little, so a time can lie in the near future. */
static inline uint64_t extend_ticks(uint64_t ticks48, uint64_t now_ticks)
{
    const uint64_t ahead = (ticks48 - now_ticks) & TICKS48_MASK;
    if (ahead <= TICKS48_MASK / 2) {
        return now_ticks + ahead;
    }
    const uint64_t ago = TICKS48_MASK + 1 - ahead;
    return ago <= now_ticks ? now_ticks - ago : 0;
}

static void queue_value(sj_assembler *assembler, const sj_record *record)
{
    assembler->context.counters.records++;
    if (sj_value_queue_add(&assembler->values, record)) {
        assembler->context.counters.value_records++;
    } else {
        assembler->context.counters.bad_records++;
    }
}

/* Consumes the leading records that the two fast loops handle, native and managed records in turn.
 * Returns their number. */
static inline size_t feed_ordinary(sj_assembler *assembler, const sj_record *records, size_t count)
{
    const sj_record_run *run = &assembler->run;
    size_t taken = 0;
    size_t managed;
    do {
        taken += sj_call_stack_feed_ordinary(assembler->own, run, records + taken, count - taken,
                                             &assembler->last_ticks);
        managed = taken == count || !sj_record_is_managed(sj_record_stack(&records[taken]))
                      ? 0
                      : sj_managed_feed_ordinary(assembler->own, run, records + taken,
                                                 count - taken, &assembler->last_ticks);
        taken += managed;
    } while (managed != 0 && taken != count);
    return taken;
}

static void strip_exit_marks(const sj_assembler *assembler, timed_record *record)
{
    record->jumps = sj_record_is_tail_call(record->stack);
    record->stack -= record->jumps ? SJ_STACK_TAIL_CALL : 0;
    record->is_untimed = assembler->has_untimed_exits && !sj_record_is_managed(record->stack) &&
                         (record->stack & SJ_UNTIMED_EXIT) != 0;
    record->stack -= record->is_untimed ? SJ_UNTIMED_EXIT : 0;
}

sj_status sj_assembler_feed(sj_assembler *assembler, const sj_record *records, size_t count,
                            uint64_t now_ticks)
{
    if (now_ticks < assembler->last_ticks) {
        now_ticks = assembler->last_ticks;
    }
    assembler->run.now_ticks = now_ticks;
    for (size_t i = 0; i < count; i++) {
        if (assembler->current != NULL && assembler->current == assembler->own &&
            !assembler->gap_pending && assembler->values.count == 0 &&
            assembler->alternate.span == 0) {
            i += feed_ordinary(assembler, records + i, count - i);
            if (i == count) {
                break;
            }
        }
        if (sj_record_tag(&records[i]) >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_VALUE) {
            queue_value(assembler, &records[i]);
            continue;
        }
        const uint64_t ticks = extend_ticks(sj_record_ticks48(&records[i]), now_ticks);
        timed_record record = {.ticks = sj_time_steps_floor(&assembler->run.steps, ticks),
                               .stack = sj_record_stack(&records[i]),
                               .tag = sj_record_tag(&records[i])};
        if (record.tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER &&
            !sj_record_is_managed(record.stack) && (record.stack & SJ_UNTIMED_ENTRY) != 0) {
            record.stack -= SJ_UNTIMED_ENTRY;
            record.is_untimed = true;
        }
        if (record.tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE) {
            strip_exit_marks(assembler, &record);
        }
        assembler->context.counters.records++;
        SJ_TRY(handle_record(assembler, &record));
    }
    return SJ_OK;
}

sj_status sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason, uint64_t calls,
                                uint64_t events, uint64_t now_ticks)
{
    (void)now_ticks; /* the gap ends at the next record or at the next cut */
    return begin_gap(assembler, reason, calls, events);
}

static bool stack_has_open(const sj_call_stack *stream, bool (*is_one)(void *, uint32_t),
                           void *context)
{
    for (uint32_t i = 0; i < stream->depth; i++) {
        const sj_stack_frame *frame = &stream->frames[i];
        if (frame->jumped_ticks == 0 && is_one(context, frame->function)) {
            return true;
        }
    }
    return false;
}

bool sj_assembler_has_open(const sj_assembler *assembler,
                           bool (*is_one)(void *context, uint32_t function), void *context)
{
    if (assembler->own != NULL && stack_has_open(assembler->own, is_one, context)) {
        return true;
    }
    for (uint32_t i = 0; i < assembler->foreign.count; i++) {
        if (stack_has_open(assembler->foreign.streams[i], is_one, context)) {
            return true;
        }
    }
    return false;
}

sj_alternate_stack sj_assembler_get_alternate(const sj_assembler *assembler)
{
    return assembler->alternate;
}

void sj_assembler_visit_open(const sj_assembler *assembler,
                             void (*visit)(void *context, const sj_stack_frame *call),
                             void *context)
{
    for (uint32_t i = 0; assembler->own != NULL && i < assembler->own->depth; i++) {
        visit(context, &assembler->own->frames[i]);
    }
}

sj_status sj_assembler_preopen(sj_assembler *assembler, const sj_stack_frame *calls, size_t count,
                               uint64_t ticks)
{
    if (assembler->context.counters.records > 0 || assembler->context.counters.calls > 0) {
        return SJ_EINVAL;
    }
    ticks = round_time(assembler, ticks);
    for (size_t i = 0; i < count; i++) {
        SJ_TRY(ensure_own(assembler, calls[i].stack, ticks));
        assembler->current = assembler->own;
        assembler->context.counters.calls++;
        assembler->context.counters.preopened++;
        SJ_TRY(sj_call_stack_enter(assembler->own, calls[i].function, calls[i].stack, ticks));
    }
    const sj_gap gap = {
        .reason = SJ_GAP_BEFORE_RECORDING, .start_ticks = ticks, .end_ticks = ticks};
    assembler->last_ticks = ticks > assembler->last_ticks ? ticks : assembler->last_ticks;
    return count > 0 ? sj_call_stack_gap(assembler->own, &gap) : SJ_OK;
}

/* Closes the pending gap at `now_ticks`. */
static sj_status close_gap_at(sj_assembler *assembler, uint64_t now_ticks)
{
    now_ticks = round_time(assembler, now_ticks);
    if (now_ticks > assembler->last_ticks) {
        SJ_TRY(close_gap(assembler, now_ticks));
        assembler->last_ticks = now_ticks;
    }
    return close_gap(assembler, assembler->last_ticks);
}

sj_status sj_assembler_flush(sj_assembler *assembler, uint64_t now_ticks)
{
    now_ticks = round_time(assembler, now_ticks);
    SJ_TRY(close_gap(assembler, assembler->last_ticks));
    if (assembler->own != NULL) {
        SJ_TRY(sj_call_stack_cut(assembler->own, now_ticks, 0));
    }
    for (uint32_t i = 0; i < assembler->foreign.count; i++) {
        SJ_TRY(sj_call_stack_cut(assembler->foreign.streams[i], now_ticks, 0));
        sj_call_stack_trim(assembler->foreign.streams[i]);
    }
    return SJ_OK;
}

void sj_assembler_set_rules(sj_assembler *assembler, const sj_value_rules *rules)
{
    assembler->context.value_rules = rules;
}

sj_status sj_assembler_restore_frames(sj_assembler *assembler)
{
    if (assembler->own != NULL) {
        SJ_TRY(sj_call_stack_restore_frames(assembler->own));
    }
    for (uint32_t i = 0; i < assembler->foreign.count; i++) {
        SJ_TRY(sj_call_stack_restore_frames(assembler->foreign.streams[i]));
    }
    return SJ_OK;
}

static sj_status end_stream(sj_assembler *assembler, sj_call_stack *stream, bool left,
                            unsigned flags)
{
    SJ_TRY(catch_up(assembler, stream));
    SJ_TRY(sj_call_stack_end_jumped(stream));
    if (left) {
        SJ_TRY(sj_call_stack_unwind_to(stream, UINT64_MAX, true, assembler->last_ticks));
    }
    SJ_TRY(sj_call_stack_end_open(stream, assembler->last_ticks));
    return sj_call_stack_cut(stream, assembler->last_ticks, flags | SJ_BLOCK_LAST);
}

sj_status sj_assembler_end(sj_assembler *assembler, uint64_t now_ticks, bool orderly,
                           unsigned flags)
{
    SJ_TRY(close_gap_at(assembler, now_ticks));
    if (assembler->own != NULL) {
        SJ_TRY(end_stream(assembler, assembler->own, orderly, flags));
    }
    for (uint32_t i = 0; i < assembler->foreign.count; i++) {
        sj_call_stack *stream = assembler->foreign.streams[i];
        SJ_TRY(end_stream(assembler, stream, orderly && stream->own_stack, flags));
    }
    return SJ_OK;
}

void sj_assembler_get_counters(const sj_assembler *assembler, sj_assembler_counters *counters)
{
    *counters = assembler->context.counters;
    counters->lost_values += assembler->values.lost;
}
