#include "agent/drain/call_filter.h"

#include "agent/assembler/managed_calls.h"
#include "agent/assembler/tail_calls.h"
#include "agent/drain/call_filter_state.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum { OUTPUT_RECORDS = 4096 /* minimum capacity */ };
static bool is_value(const sj_record *record)
{
    return sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_VALUE;
}

void sj_call_filter_init(sj_call_filter *filter, const sj_call_filter_thread *thread)
{
    *filter = (sj_call_filter){.thread = *thread};
    if (thread->stack_high == 0) {
        filter->thread.stack_high = UINT64_MAX;
    }
}

void sj_call_filter_drop_all(sj_call_filter *filter, bool drops)
{
    filter->keeps_nothing = drops;
}

void sj_call_filter_deinit(sj_call_filter *filter)
{
    free(filter->calls);
    free(filter->output);
    sj_filter_values_deinit(&filter->values);
    filter->calls = NULL;
    filter->output = NULL;
}

static void put(sj_call_filter *filter, const sj_record *record)
{
    if (filter->output_count == filter->output_capacity &&
        sj_array_reserve(&filter->output, &filter->output_capacity, filter->output_count,
                         OUTPUT_RECORDS, sizeof(*filter->output)) != SJ_OK) {
        filter->failed = true;
        return;
    }
    filter->output[filter->output_count++] = *record;
}

static void put_all(sj_call_filter *filter, const sj_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(filter, &records[i]);
    }
}

/* Moves the waiting values of an entry or exit into `values.claimed`. */
static void claim_values(sj_call_filter *filter, const sj_record *of)
{
    filter->failed = filter->failed || sj_filter_values_claim(&filter->values, of) != SJ_OK;
}

/* Passes on the claimed values, then the entry or exit that they belong to. */
static void put_with_values(sj_call_filter *filter, const sj_record *record)
{
    put_all(filter, filter->values.claimed, filter->values.claimed_count);
    put(filter, record);
}

/* Keeps the values of the innermost call, which is held back. */
static void hold_values(sj_call_filter *filter, sj_filtered_call *call)
{
    filter->failed = filter->failed || sj_filter_values_hold(&filter->values) != SJ_OK;
    call->value_count = filter->values.held_count - call->first_value;
}

/* Passes on the waiting values, because the filter may not see the calls they belong to. */
static void pass_waiting(sj_call_filter *filter)
{
    put_all(filter, filter->values.waiting, filter->values.waiting_count);
    filter->values.waiting_count = 0;
}

/* Passes on the entry of a call. Before it, passes on the exit of the call that jumped to it. */
static void pass_enter(sj_call_filter *filter, uint32_t index)
{
    for (uint32_t i = index; i > 0 && filter->calls[i - 1].has_left; i--) {
        sj_filtered_call *caller = &filter->calls[i - 1];
        if (caller->state == CALL_PASSED) {
            if (!caller->exit_passed) {
                caller->exit_passed = true;
                put(filter, &caller->exit);
            }
            break;
        }
    }
    const sj_filtered_call *call = &filter->calls[index];
    put_all(filter, filter->values.held + call->first_value, call->value_count);
    put(filter, &call->enter);
}

/* Passes on the held calls, outermost first, up to the first that has not lasted for `least`
 * ticks. */
static void pass_held(sj_call_filter *filter, uint64_t now48, uint64_t least)
{
    while (filter->held_from < filter->depth) {
        sj_filtered_call *call = &filter->calls[filter->held_from];
        if (call->state == CALL_HELD) {
            if (sj_record_age(now48, call->ticks48) < least) {
                return;
            }
            call->state = CALL_PASSED;
            pass_enter(filter, filter->held_from);
        }
        filter->held_from++;
    }
}

static size_t count_calls(const sj_call_filter *filter, uint32_t from, call_state state)
{
    size_t count = 0;
    for (uint32_t i = from; i < filter->depth; i++) {
        count += filter->calls[i].state == state;
    }
    return count;
}

size_t sj_call_filter_count_held(const sj_call_filter *filter)
{
    return count_calls(filter, filter->held_from, CALL_HELD);
}

/* Removes the innermost call. `seen` is true if its exit was recorded. */
static void end_call(sj_call_filter *filter, uint64_t now48, bool seen)
{
    const sj_filtered_call *call = &filter->calls[--filter->depth];
    const uint64_t duration = sj_record_age(now48, call->ticks48);
    if (filter->held_from > filter->depth) {
        filter->held_from = filter->depth;
    }
    if (filter->values.held_count > call->first_value) {
        filter->values.held_count = call->first_value;
    }
    if (call->state != CALL_PASSED) {
        sj_function_rules_count(filter->judge.rules,
                                call->state == CALL_HELD ? SJ_FILTERED_MINIMUM
                                                         : (sj_filter_reason)call->reason,
                                call->function, duration);
    }
    if (seen && call->triggers != 0) {
        sj_triggers_call(filter->judge.triggers, call->triggers, duration,
                         sj_record_whole_ticks(filter->now_ticks, now48), filter->thread.number);
    }
}

/* Removes the calls below a stack address. Their exits were not recorded. */
static void end_below(sj_call_filter *filter, uint64_t stack, uint64_t now48)
{
    while (filter->depth > 0 && filter->calls[filter->depth - 1].stack < stack) {
        end_call(filter, now48, false);
    }
}

static bool has_jumped(const sj_call_filter *filter)
{
    return filter->depth > 0 && filter->calls[filter->depth - 1].has_left;
}

/* Ends the calls that jumped to a call that has ended. They get the time of `exit`. */
static void end_chain(sj_call_filter *filter, const sj_record *exit)
{
    enum { TICKS_BYTES = 6 };
    const uint64_t ticks48 = sj_record_ticks48(exit);
    while (has_jumped(filter)) {
        sj_filtered_call *call = &filter->calls[filter->depth - 1];
        if (call->state == CALL_PASSED && !call->exit_passed) {
            sj_record returned = call->exit;
            memcpy(returned.bytes, exit->bytes, TICKS_BYTES);
            returned.bytes[TICKS_BYTES] &= (uint8_t)~SJ_STACK_TAIL_CALL;
            put(filter, &returned);
        }
        end_call(filter, ticks48, true);
    }
}

/* Ends a chain of calls whose last jump has an unknown target. */
static void end_jumped_call(sj_call_filter *filter)
{
    if (has_jumped(filter)) {
        const sj_record exit = filter->calls[filter->depth - 1].exit;
        end_chain(filter, &exit);
    }
}

/* Ends the calls of a chain that do not stay open when it continues with `callee`. A call whose
 * exit is still to be passed on stays open, too. */
static void fold(sj_call_filter *filter, uint32_t callee, uint64_t ticks48)
{
    uint32_t first = filter->depth - 1;
    while (first > 0 && filter->calls[first - 1].has_left) {
        first--;
    }
    uint32_t kept = first;
    bool is_head = false;
    while (!is_head && kept < filter->depth) {
        sj_filtered_call *call = &filter->calls[kept];
        is_head = sj_tail_chain_folds(kept - first, call->function, call->is_head, callee);
        call->is_head = is_head;
        kept++;
    }
    sj_filtered_call waiting = {0};
    while (filter->depth > kept) {
        const sj_filtered_call *call = &filter->calls[filter->depth - 1];
        if (call->state == CALL_PASSED && !call->exit_passed) {
            waiting = *call;
            filter->depth--;
        } else {
            end_call(filter, ticks48, true);
        }
    }
    filter->held_from = filter->held_from < filter->depth ? filter->held_from : filter->depth;
    if (waiting.has_left) {
        filter->held_from += filter->held_from == filter->depth;
        filter->calls[filter->depth++] = waiting;
    }
}

/* Decides whether a call is passed on, held back or dropped. */
static void decide(sj_call_filter *filter, sj_filtered_call *call)
{
    const sj_call_verdict verdict =
        sj_policy_judge_call(&filter->judge, call->function, filter->depth, !filter->keeps_nothing);
    call->triggers = verdict.triggers;
    call->reason = verdict.reason;
    call->state = !verdict.is_kept             ? CALL_DROPPED
                  : filter->minimum_ticks != 0 ? CALL_HELD
                                               : CALL_PASSED;
}

/* Returns the location of the next call; NULL if out of memory. */
static sj_filtered_call *reserve_call(sj_call_filter *filter)
{
    if (filter->depth == filter->capacity &&
        sj_array_reserve(&filter->calls, &filter->capacity, filter->depth, 1,
                         sizeof(*filter->calls)) != SJ_OK) {
        filter->failed = true;
        return NULL;
    }
    return &filter->calls[filter->depth];
}

/* Returns the address of a managed call that is entered now. The assembler gives it the same
 * address. */
static uint64_t managed_address(const sj_call_filter *filter)
{
    const sj_record_run own = {.stack_low = filter->thread.stack_low,
                               .stack_span = filter->thread.stack_high - filter->thread.stack_low};
    return filter->depth > 0 ? sj_managed_address(filter->calls[filter->depth - 1].stack)
                             : sj_managed_base(&own);
}

static void filter_enter(sj_call_filter *filter, const sj_record *record, uint64_t stack,
                         uint64_t ticks48)
{
    const bool is_managed = sj_record_is_managed(stack);
    const bool is_jumped_to =
        !is_managed && has_jumped(filter) && filter->calls[filter->depth - 1].stack == stack;
    if (is_jumped_to) {
        fold(filter, sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK, ticks48);
    } else {
        end_jumped_call(filter);
    }
    stack = is_managed ? managed_address(filter) : stack;
    if (!is_managed && !is_jumped_to) {
        end_below(filter, stack + 1, ticks48);
    }
    sj_filtered_call *call = reserve_call(filter);
    if (call == NULL) {
        return;
    }
    *call = (sj_filtered_call){.enter = *record,
                               .stack = stack,
                               .ticks48 = ticks48,
                               .function = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK,
                               .first_value = filter->values.held_count};
    decide(filter, call);
    claim_values(filter, record);
    if (call->state != CALL_DROPPED) {
        hold_values(filter, call);
    }
    filter->depth++;
    if (call->state == CALL_PASSED) {
        pass_enter(filter, filter->depth - 1);
        filter->values.held_count = call->first_value;
    }
    if (call->state != CALL_HELD && filter->held_from == filter->depth - 1) {
        filter->held_from = filter->depth;
    }
}

/* Returns the depth of the runtime's call that an exit of `function` ends; 0 if there is none.
 * `is_in_place`: searches for a call of code that is hooked in place. */
static uint32_t find_managed(const sj_call_filter *filter, uint32_t function, bool is_in_place)
{
    for (uint32_t i = 0; i < filter->depth && i < SJ_MANAGED_REACH; i++) {
        const sj_filtered_call *call = &filter->calls[filter->depth - i - 1];
        if (call->function == function && sj_managed_is_call(call->stack) != is_in_place &&
            !call->has_left) {
            return filter->depth - i;
        }
    }
    return 0;
}

/* True if an exception has left the call at `depth`, but functions of the runtime above it still
 * run. The call ends with them. Passes the exit on if the entry was and no call is held back. */
static bool ends_later(sj_call_filter *filter, const sj_record *record, uint32_t depth)
{
    if (sj_record_stack(record) != SJ_MANAGED_PASSED || depth == filter->depth) {
        return false;
    }
    if (filter->calls[depth - 1].state == CALL_PASSED && filter->held_from >= filter->depth) {
        put_with_values(filter, record);
    }
    return true;
}

/* Stores or passes on the values of an exit that is passed on later. */
static void leave_values(sj_call_filter *filter, sj_filtered_call *call)
{
    if (call->state == CALL_PASSED) {
        put_all(filter, filter->values.claimed, filter->values.claimed_count);
    } else if (call->state == CALL_HELD) {
        hold_values(filter, call);
    }
}

static void filter_exit(sj_call_filter *filter, const sj_record *record, uint64_t stack,
                        uint64_t ticks48)
{
    const uint32_t function = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    end_jumped_call(filter);
    claim_values(filter, record);
    if (sj_record_is_managed(stack)) {
        const uint32_t depth = find_managed(filter, function, stack == SJ_MANAGED_PASSED);
        if (depth == 0) {
            put_with_values(filter, record); /* the assembler counts the orphan exit */
            return;
        }
        if (ends_later(filter, record, depth)) {
            return;
        }
        while (filter->depth > depth) {
            end_call(filter, ticks48, false);
        }
        stack = filter->calls[depth - 1].stack;
    }
    end_below(filter, stack, ticks48);
    sj_filtered_call *call = filter->depth > 0 ? &filter->calls[filter->depth - 1] : NULL;
    if (call == NULL || call->stack != stack || call->function != function) {
        put_with_values(filter, record);
        return;
    }
    pass_held(filter, ticks48, filter->minimum_ticks);
    if (sj_record_is_tail_call(sj_record_stack(record))) {
        call->has_left = true;
        call->exit = *record;
        leave_values(filter, call);
        return;
    }
    if (call->state == CALL_PASSED) {
        put_with_values(filter, record);
    }
    end_call(filter, ticks48, true);
    end_chain(filter, record);
}

/* True if a record lies on the thread's own stack. Managed records have no addresses and count as
 * lying there. */
static bool is_on_own_stack(const sj_call_filter *filter, uint64_t stack)
{
    return sj_record_is_managed(stack) ||
           (stack >= filter->thread.stack_low && stack < filter->thread.stack_high &&
            !sj_alternate_stack_has(&filter->alternate, stack));
}

/* Ends the handler on an alternate stack, because the thread has left that stack. The assembler may
 * not get the record that shows it. */
static void end_alternate(sj_call_filter *filter, uint64_t ticks48)
{
    const sj_record note =
        sj_record_make(ticks48, 0, sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW));
    filter->alternate = (sj_alternate_stack){.span = 0};
    put(filter, &note);
}

static void filter_note(sj_call_filter *filter, const sj_record *record, uint64_t ticks48)
{
    const uint32_t note = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    if (note == SJ_NOTE_REQUEST) {
        sj_call_filter_request(filter, sj_record_stack(record), ticks48);
        return;
    }
    const bool is_alternate = note == SJ_NOTE_ALTERNATE_LOW || note == SJ_NOTE_ALTERNATE_HIGH;
    if (is_alternate) {
        sj_alternate_stack_note(&filter->alternate, note, sj_record_stack(record));
    } else if (note != SJ_NOTE_WAITED) {
        end_jumped_call(filter);
    }
    pass_held(filter, ticks48, 0); /* a note must follow calls that were passed on */
    put(filter, record);
    if (note == SJ_NOTE_UNWOUND && is_on_own_stack(filter, sj_record_stack(record))) {
        /* for another stack, no call is below the address */
        end_below(filter, sj_record_stack(record), ticks48);
    }
    if (note == SJ_NOTE_MARK_BEGIN && filter->judge.triggers != NULL) {
        sj_call_filter_mark(filter, record, ticks48);
    }
}

/* Writes a note for the assembler: calls are recorded from here on, or no longer. */
static void put_recording_note(sj_call_filter *filter, uint64_t ticks48, bool on)
{
    const sj_record note =
        sj_record_make(ticks48, on, sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_RECORDING));
    put(filter, &note);
}

static void follow_pause(sj_call_filter *filter, uint64_t ticks48)
{
    const bool paused =
        filter->judge.triggers != NULL && sj_triggers_is_paused(filter->judge.triggers);
    if (paused == filter->paused) {
        return;
    }
    end_jumped_call(filter);
    pass_held(filter, ticks48, 0);
    filter->paused = paused;
    filter->values.waiting_count = 0;
    filter->values.held_count = 0;
    filter->depth = 0;
    filter->held_from = 0;
    put_recording_note(filter, ticks48, !paused);
}

static void filter_record(sj_call_filter *filter, const sj_record *record)
{
    const uint64_t ticks48 = sj_record_ticks48(record);
    const uint64_t stack = sj_record_frame(record);
    const uint32_t kind = sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS;
    if (is_value(record)) {
        if (!filter->paused) {
            filter->failed =
                filter->failed || sj_filter_values_add(&filter->values, record) != SJ_OK;
        }
        return;
    }
    follow_pause(filter, ticks48);
    if (kind == SJ_RECORD_NOTE) {
        filter_note(filter, record, ticks48);
        return;
    }
    const bool is_own = is_on_own_stack(filter, stack);
    if (is_own && filter->alternate.span != 0 && !sj_record_is_managed(stack)) {
        end_alternate(filter, ticks48);
    }
    if (filter->paused) {
        return;
    }
    if (!is_own) {
        pass_held(filter, ticks48, 0);
        claim_values(filter, record);
        put_with_values(filter, record);
    } else if (kind == SJ_RECORD_ENTER) {
        pass_held(filter, ticks48, filter->minimum_ticks);
        filter_enter(filter, record, stack, ticks48);
    } else {
        filter_exit(filter, record, stack, ticks48);
    }
}

bool sj_call_filter_is_idle(const sj_call_filter *filter, bool has_request)
{
    return !filter->is_needed &&
           (filter->judge.triggers == NULL ||
            (!filter->paused && !has_request && !sj_triggers_is_paused(filter->judge.triggers)));
}

/* Lends the records that are passed on. */
static sj_status lend_output(sj_call_filter *filter, sj_record_batch *batch)
{
    if (filter->failed) {
        return SJ_ENOMEM;
    }
    batch->records = filter->output;
    batch->count = (uint32_t)filter->output_count;
    return SJ_OK;
}

sj_status sj_call_filter_apply(sj_call_filter *filter, sj_record_batch *batch)
{
    filter->now_ticks = batch->now_ticks;
    filter->output_count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        filter_record(filter, &batch->records[i]);
    }
    if (filter->is_finishing && count_calls(filter, 0, CALL_DROPPED) == 0) {
        filter->is_finishing = false;
        filter->is_needed = false;
    }
    if (!filter->is_needed) {
        pass_waiting(filter);
    }
    return lend_output(filter, batch);
}

static void adopt(void *context, const sj_stack_frame *call)
{
    sj_call_filter *filter = context;
    sj_filtered_call *slot = reserve_call(filter);
    if (slot != NULL) {
        *slot = (sj_filtered_call){.stack = call->stack,
                                   .ticks48 = call->start_ticks & SJ_TICKS48_MASK,
                                   .function = call->function,
                                   .first_value = filter->values.held_count,
                                   .state = CALL_PASSED,
                                   .has_left = call->jumped_ticks != 0,
                                   .is_head = (call->flags & SJ_TAIL_HEAD) != 0,
                                   .exit_passed = true};
        memcpy(slot->exit.bytes, &call->jumped_ticks, 6);
        filter->depth++;
    }
}

/* Adopts the open calls of the assembler, unless the filter has followed them itself. Gives all
 * open calls the triggers of the new policy. */
static void adopt_open_calls(sj_call_filter *filter, const sj_assembler *assembler)
{
    if (!filter->is_needed || filter->paused) {
        filter->depth = 0;
        filter->values.held_count = 0;
        filter->alternate = sj_assembler_get_alternate(assembler);
        sj_assembler_visit_open(assembler, adopt, filter);
    }
    filter->held_from = filter->depth;
    for (uint32_t i = 0; i < filter->depth; i++) {
        sj_filtered_call *call = &filter->calls[i];
        call->triggers = sj_policy_judge_triggers(&filter->judge, call->function);
    }
}

sj_status sj_call_filter_set(sj_call_filter *filter, const sj_policy_judge *judge,
                             const sj_assembler *assembler)
{
    filter->judge = *judge;
    filter->minimum_ticks = sj_policy_judge_minimum_ticks(judge);
    filter->keeps_nothing = !sj_policy_judge_thread(judge, filter->thread.name);
    filter->last_tick = 0;
    adopt_open_calls(filter, assembler);
    const bool filters = sj_policy_judge_filters_calls(judge);
    filter->is_finishing = !filters && count_calls(filter, 0, CALL_DROPPED) != 0;
    filter->is_needed = filters || filter->is_finishing;
    return filter->failed ? SJ_ENOMEM : SJ_OK;
}

sj_status sj_call_filter_release(sj_call_filter *filter, sj_record_batch *batch)
{
    filter->output_count = 0;
    if (filter->is_needed && !filter->paused) {
        end_jumped_call(filter);
        pass_held(filter, batch->now_ticks & SJ_TICKS48_MASK, 0);
        pass_waiting(filter);
    }
    return lend_output(filter, batch);
}
