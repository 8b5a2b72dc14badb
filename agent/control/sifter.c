#include "agent/control/sifter.h"

#include <stdlib.h>

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

static sj_status feed_sifted(sj_sifter *sifter, const sj_record *records, size_t count,
                             uint64_t now_ticks);
static sj_status tell_all(sj_sifter *sifter, uint64_t now_ticks);

static void count_calls(const sj_sifter *sifter, const sj_record *records, size_t count)
{
    uint64_t *calls = sj_governed_calls(sifter->governed);
    uint64_t counted = 0;
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        /* An ENTER is a tag of nothing but a function. */
        if (tag < SJ_GOVERNED_FUNCTIONS) {
            __atomic_store_n(&calls[tag], calls[tag] + 1, __ATOMIC_RELAXED);
            counted++;
            highest = tag > highest ? tag : highest;
        }
    }
    sj_governed_count(sifter->governed, counted, highest);
}

static bool is_of_kind(const sj_record *record, sj_record_kind kind)
{
    return sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS == (uint32_t)kind;
}

static bool is_value(const sj_record *record)
{
    return is_of_kind(record, SJ_RECORD_VALUE);
}

/* whole_ticks extends a time of records that were made by `now_ticks`. */
static uint64_t whole_ticks(uint64_t now_ticks, uint64_t ticks48)
{
    return now_ticks - ((now_ticks - ticks48) & TICKS48_MASK);
}

/* note_open tells the assembler of calls that are open while they have no exit any more. */
static sj_status note_open(sj_sifter *sifter, bool (*is_endless)(void *context, uint32_t function),
                           void *context, uint64_t now_ticks)
{
    SJ_TRY(tell_all(sifter, now_ticks));
    return sj_assembler_has_open(sifter->assembler, is_endless, context)
               ? sj_assembler_lost(sifter->assembler, SJ_GAP_PAUSED, 0, 0, now_ticks)
               : SJ_OK;
}

/* note_change does so for functions that were set free. */
static sj_status note_change(sj_sifter *sifter, uint32_t changes, uint64_t now_ticks)
{
    sj_freed_since since = {.freed = sifter->freed, .seen = sifter->seen_changes};
    sifter->seen_changes = changes;
    sifter->late_records = SJ_SIFTER_LATE_RECORDS;
    return note_open(sifter, sj_freed_has, &since, now_ticks);
}

static bool is_same(void *context, uint32_t function)
{
    return function == *(const uint32_t *)context;
}

/* feed_late feeds records behind a change. A thread that was stopped in an entry's probe, or waited
 * there for room, tells that entry of a free function only now, and its exit never. */
static sj_status feed_late(sj_sifter *sifter, const sj_record *records, size_t count,
                           uint64_t now_ticks)
{
    size_t fed = 0;
    for (size_t i = 0; i < count && sifter->late_records > 0; i++) {
        uint32_t function = sj_record_tag(&records[i]);
        sifter->late_records--;
        if (is_of_kind(&records[i], SJ_RECORD_ENTER) &&
            sj_freed_is_free(sifter->freed, function, sifter->seen_changes)) {
            SJ_TRY(feed_sifted(sifter, records + fed, i + 1 - fed, now_ticks));
            SJ_TRY(note_open(sifter, is_same, &function, now_ticks));
            fed = i + 1;
        }
    }
    return feed_sifted(sifter, records + fed, count - fed, now_ticks);
}

/* count_before returns how many of the records come before a change. */
static size_t count_before(const sj_record *records, size_t count, uint64_t ticks,
                           uint64_t now_ticks)
{
    size_t before = 0;
    while (before < count &&
           (is_value(&records[before]) ||
            whole_ticks(now_ticks, sj_record_ticks48(&records[before])) < ticks)) {
        before++;
    }
    while (before < count && before > 0 && is_value(&records[before - 1])) {
        before--; /* it has no time, and belongs to the record behind it */
    }
    return before;
}

/* note_freed feeds what was recorded before functions were set free, and notes that: each change
 * that the records have come to, in its place. Of functions that were set free only by a later one
 * calls that are open at the first are noted, too. `*fed` is how many it fed. */
static sj_status note_freed(sj_sifter *sifter, const sj_record *records, size_t count, size_t *fed,
                            uint64_t now_ticks)
{
    const uint32_t changes = sj_freed_changes(sifter->freed);
    while (sifter->seen_changes != changes) {
        const uint32_t change = sifter->seen_changes + 1;
        const size_t before = count_before(records + *fed, count - *fed,
                                           sj_freed_time(sifter->freed, change), now_ticks);
        if (*fed + before == count) {
            return SJ_OK; /* its moment is still to come */
        }
        SJ_TRY(feed_late(sifter, records + *fed, before, now_ticks));
        *fed += before;
        SJ_TRY(note_change(sifter, change, now_ticks));
    }
    return SJ_OK;
}

/* What becomes of an open call. */
typedef enum sifted_state {
    SIFTED_TOLD = 0, /* the assembler has its ENTER */
    SIFTED_HELD = 1, /* it waits until it has lasted long enough */
    SIFTED_OUT = 2   /* counted only */
} sifted_state;

struct sj_sifted_call {
    sj_record enter;
    uint64_t stack;
    uint64_t ticks48;
    uint32_t function;
    uint32_t triggers;
    uint8_t state;  /* sifted_state */
    uint8_t reason; /* sj_filter_reason */
};

void sj_sifter_deinit(sj_sifter *sifter)
{
    free(sifter->calls);
    free(sifter->output);
    sifter->calls = NULL;
    sifter->output = NULL;
}

static void put(sj_sifter *sifter, const sj_record *record)
{
    if (sifter->output_count == sifter->output_capacity) {
        const size_t capacity = sifter->output_capacity != 0 ? 2 * sifter->output_capacity : 4096;
        sj_record *grown = realloc(sifter->output, capacity * sizeof(*grown));
        if (grown == NULL) {
            sifter->failed = true;
            return;
        }
        sifter->output = grown;
        sifter->output_capacity = capacity;
    }
    sifter->output[sifter->output_count++] = *record;
}

static uint64_t age(uint64_t now48, uint64_t then48)
{
    const uint64_t ticks = (now48 - then48) & TICKS48_MASK;
    return ticks <= TICKS48_MASK / 2 ? ticks : 0; /* a clock that went back */
}

/* tell_held tells the calls that have lasted for `least` ticks, outermost first. */
static void tell_held(sj_sifter *sifter, uint64_t now48, uint64_t least)
{
    while (sifter->held_from < sifter->depth) {
        sj_sifted_call *call = &sifter->calls[sifter->held_from];
        if (call->state == SIFTED_HELD) {
            if (age(now48, call->ticks48) < least) {
                return;
            }
            call->state = SIFTED_TOLD;
            put(sifter, &call->enter);
        }
        sifter->held_from++;
    }
}

/* end_call removes the innermost call; `seen`: by its exit. */
static void end_call(sj_sifter *sifter, uint64_t now48, bool seen)
{
    const sj_sifted_call *call = &sifter->calls[--sifter->depth];
    const uint64_t duration = age(now48, call->ticks48);
    if (sifter->held_from > sifter->depth) {
        sifter->held_from = sifter->depth;
    }
    if (call->state != SIFTED_TOLD) {
        sj_rules_count(sifter->rules,
                       call->state == SIFTED_HELD ? SJ_FILTERED_MINIMUM
                                                  : (sj_filter_reason)call->reason,
                       call->function, duration);
    }
    if (seen && call->triggers != 0) {
        sj_triggers_call(sifter->triggers, call->triggers, duration,
                         whole_ticks(sifter->now_ticks, now48), sifter->thread);
    }
}

/* judge decides what becomes of a call. */
static void judge(sj_sifter *sifter, sj_sifted_call *call, uint32_t one_in)
{
    const sj_policy *policy = sifter->policy;
    call->state = SIFTED_OUT;
    if (sifter->keeps_nothing) {
        call->reason = SJ_FILTERED_THREAD;
    } else if (policy->max_depth != 0 && sifter->depth >= policy->max_depth) {
        call->reason = SJ_FILTERED_DEPTH;
    } else if (one_in > 1 && !sj_rules_sample(sifter->rules, call->function, one_in)) {
        call->reason = SJ_FILTERED_SAMPLED;
    } else {
        call->state = sifter->minimum_ticks != 0 ? SIFTED_HELD : SIFTED_TOLD;
    }
}

/* room_for_call returns where the next call goes; NULL when memory is short. */
static sj_sifted_call *room_for_call(sj_sifter *sifter)
{
    if (sifter->depth == sifter->capacity) {
        const uint32_t capacity = sifter->capacity != 0 ? 2 * sifter->capacity : 64;
        sj_sifted_call *grown = realloc(sifter->calls, capacity * sizeof(*grown));
        if (grown == NULL) {
            sifter->failed = true;
            return NULL;
        }
        sifter->calls = grown;
        sifter->capacity = capacity;
    }
    return &sifter->calls[sifter->depth];
}

static void take_enter(sj_sifter *sifter, const sj_record *record, uint64_t stack, uint64_t ticks48)
{
    while (sifter->depth > 0 && sifter->calls[sifter->depth - 1].stack <= stack) {
        end_call(sifter, ticks48, false);
    }
    sj_sifted_call *call = room_for_call(sifter);
    if (call == NULL) {
        return;
    }
    const uint32_t function = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    const sj_function_rule rule = sj_rules_get(sifter->rules, function);
    *call = (sj_sifted_call){.enter = *record,
                             .stack = stack,
                             .ticks48 = ticks48,
                             .function = function,
                             .triggers = rule.triggers};
    judge(sifter, call, rule.one_in);
    sifter->depth++;
    if (call->state == SIFTED_TOLD) {
        put(sifter, record);
    }
    if (call->state != SIFTED_HELD && sifter->held_from == sifter->depth - 1) {
        sifter->held_from = sifter->depth;
    }
}

static void take_leave(sj_sifter *sifter, const sj_record *record, uint64_t stack, uint64_t ticks48)
{
    const uint32_t function = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    while (sifter->depth > 0 && sifter->calls[sifter->depth - 1].stack < stack) {
        end_call(sifter, ticks48, false);
    }
    const sj_sifted_call *call = sifter->depth > 0 ? &sifter->calls[sifter->depth - 1] : NULL;
    if (call == NULL || call->stack != stack || call->function != function) {
        put(sifter, record); /* the assembler counts it */
        return;
    }
    tell_held(sifter, ticks48, sifter->minimum_ticks);
    if (call->state == SIFTED_TOLD) {
        put(sifter, record);
    }
    end_call(sifter, ticks48, true);
}

static void take_request(sj_sifter *sifter, uint64_t what, uint64_t ticks48)
{
    if (sifter->triggers == NULL) {
        return;
    }
    switch (what) {
    case SJ_REQUEST_START:
    case SJ_REQUEST_STOP:
        sj_triggers_pause(sifter->triggers, what == SJ_REQUEST_STOP);
        break;
    case SJ_REQUEST_DUMP:
        sj_triggers_event(sifter->triggers, SJ_TRIGGER_APP, "", 0,
                          whole_ticks(sifter->now_ticks, ticks48), sifter->thread);
        break;
    case SJ_REQUEST_FRAME:
        if (sifter->last_tick != 0) {
            sj_triggers_event(sifter->triggers, SJ_TRIGGER_JANK, "",
                              age(ticks48, sifter->last_tick),
                              whole_ticks(sifter->now_ticks, ticks48), sifter->thread);
        }
        sifter->last_tick = ticks48;
        break;
    case SJ_REQUEST_WOKE:
        sifter->woke = ticks48;
        break;
    case SJ_REQUEST_WAIT:
        if (sifter->woke != 0) {
            sj_triggers_loop(sifter->triggers, sifter->thread_name, age(ticks48, sifter->woke),
                             whole_ticks(sifter->now_ticks, ticks48), sifter->thread);
        }
        sifter->woke = 0;
        break;
    default:
        break;
    }
}

/* take_mark: a trigger may start or stop recording right here. */
static void take_mark(sj_sifter *sifter, const sj_record *record, uint64_t ticks48)
{
    char name[SJ_ARENA_MARK_BYTES + 1] = "";
    const uint32_t index = (uint32_t)sj_record_stack(record) % SJ_ARENA_MARKS;
    memcpy(name, sj_arena_view_mark(sifter->view, index)->name, SJ_ARENA_MARK_BYTES);
    sj_triggers_event(sifter->triggers, SJ_TRIGGER_MARK, name, 0,
                      whole_ticks(sifter->now_ticks, ticks48), sifter->thread);
}

static void take_note(sj_sifter *sifter, const sj_record *record, uint64_t ticks48)
{
    const uint32_t note = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    if (note == SJ_NOTE_REQUEST) {
        take_request(sifter, sj_record_stack(record), ticks48);
        return;
    }
    tell_held(sifter, ticks48, 0); /* a note's place is among calls that are told */
    put(sifter, record);
    if (note == SJ_NOTE_MARK_BEGIN && sifter->triggers != NULL) {
        take_mark(sifter, record, ticks48);
    }
}

/* make_recording_note tells the assembler that calls are not recorded from here on, or again. */
static void put_recording_note(sj_sifter *sifter, uint64_t ticks48, bool on)
{
    sj_record note;
    const uint64_t argument = on;
    const uint32_t tag = (uint32_t)SJ_RECORD_NOTE << SJ_RECORD_FUNCTION_BITS | SJ_NOTE_RECORDING;
    memcpy(note.bytes, &ticks48, 6);
    memcpy(note.bytes + 6, &argument, 6);
    memcpy(note.bytes + 12, &tag, sizeof(tag));
    put(sifter, &note);
}

static void follow_pause(sj_sifter *sifter, uint64_t ticks48)
{
    const bool paused = sifter->triggers != NULL && sj_triggers_is_paused(sifter->triggers);
    if (paused == sifter->paused) {
        return;
    }
    tell_held(sifter, ticks48, 0);
    sifter->paused = paused;
    sifter->depth = 0;
    sifter->held_from = 0;
    put_recording_note(sifter, ticks48, !paused);
}

static void sift(sj_sifter *sifter, const sj_record *record)
{
    const uint64_t ticks48 = sj_record_ticks48(record);
    const uint64_t stack = sj_record_stack(record);
    const uint32_t kind = sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS;
    if (is_value(record)) {
        if (!sifter->paused) {
            put(sifter, record); /* the assembler drops it when its call does not come */
        }
        return;
    }
    follow_pause(sifter, ticks48);
    if (kind == SJ_RECORD_NOTE) {
        take_note(sifter, record, ticks48);
    } else if (sifter->paused) {
        return;
    } else if (stack < sifter->stack_low || stack >= sifter->stack_high) {
        tell_held(sifter, ticks48, 0);
        put(sifter, record);
    } else if (kind == SJ_RECORD_ENTER) {
        tell_held(sifter, ticks48, sifter->minimum_ticks);
        take_enter(sifter, record, stack, ticks48);
    } else {
        take_leave(sifter, record, stack, ticks48);
    }
}

static bool has_out(const sj_sifter *sifter)
{
    for (uint32_t i = 0; i < sifter->depth; i++) {
        if (sifter->calls[i].state == SIFTED_OUT) {
            return true;
        }
    }
    return false;
}

static sj_status feed_sifted(sj_sifter *sifter, const sj_record *records, size_t count,
                             uint64_t now_ticks)
{
    const bool pauses = sifter->triggers != NULL && (sifter->paused || sifter->has_request ||
                                                     sj_triggers_is_paused(sifter->triggers));
    if (!sifter->is_needed && !pauses) {
        return sj_assembler_feed(sifter->assembler, records, count, now_ticks);
    }
    sifter->now_ticks = now_ticks;
    sifter->output_count = 0;
    for (size_t i = 0; i < count; i++) {
        sift(sifter, &records[i]);
    }
    if (sifter->failed) {
        return SJ_ENOMEM;
    }
    if (sifter->is_finishing && !has_out(sifter)) {
        sifter->is_finishing = false;
        sifter->is_needed = false;
    }
    return sj_assembler_feed(sifter->assembler, sifter->output, sifter->output_count, now_ticks);
}

static bool asks_of_calls(const sj_policy *policy)
{
    return policy->max_depth != 0 || policy->minimum_ns != 0 || policy->thread_count != 0 ||
           policy->sampled_count != 0 || policy->trigger_count != 0 || policy->begins_paused;
}

static void adopt(void *context, const sj_frame *call)
{
    sj_sifter *sifter = context;
    sj_sifted_call *room = room_for_call(sifter);
    if (room != NULL) {
        *room = (sj_sifted_call){.stack = call->stack,
                                 .ticks48 = call->start_ticks & TICKS48_MASK,
                                 .function = call->function,
                                 .state = SIFTED_TOLD};
        sifter->depth++;
    }
}

/* take_over makes the calls that are open those of the new policy. */
static void take_over(sj_sifter *sifter)
{
    if (!sifter->is_needed || sifter->paused) {
        sifter->depth = 0;
        sj_assembler_visit_open(sifter->assembler, adopt, sifter);
    }
    sifter->held_from = sifter->depth;
    for (uint32_t i = 0; i < sifter->depth; i++) {
        sj_sifted_call *call = &sifter->calls[i];
        call->triggers = sj_rules_get(sifter->rules, call->function).triggers;
    }
}

sj_status sj_sifter_set(sj_sifter *sifter, const sj_sifter_rules *rules, uint64_t now_ticks)
{
    SJ_TRY(tell_all(sifter, now_ticks));
    sifter->policy = rules->policy;
    sifter->rules = rules->rules;
    sifter->triggers = rules->triggers;
    sifter->minimum_ticks = rules->minimum_ticks;
    sifter->keeps_nothing = rules->keeps_nothing;
    sifter->last_tick = 0;
    take_over(sifter);
    const bool asks = asks_of_calls(rules->policy);
    sifter->is_finishing = !asks && has_out(sifter);
    sifter->is_needed = asks || sifter->is_finishing;
    return sifter->failed ? SJ_ENOMEM : SJ_OK;
}

sj_status sj_sifter_feed(sj_sifter *sifter, const sj_record *records, size_t count,
                         uint64_t now_ticks)
{
    size_t fed = 0;
    if (sifter->governed != NULL) {
        count_calls(sifter, records, count);
    }
    if (sifter->freed != NULL) {
        SJ_TRY(note_freed(sifter, records, count, &fed, now_ticks));
    }
    const sj_status status = feed_late(sifter, records + fed, count - fed, now_ticks);
    sifter->has_request = false;
    return status;
}

/* tell_all tells the calls that are held back. */
static sj_status tell_all(sj_sifter *sifter, uint64_t now_ticks)
{
    if (!sifter->is_needed || sifter->paused) {
        return SJ_OK;
    }
    sifter->output_count = 0;
    tell_held(sifter, now_ticks & TICKS48_MASK, 0);
    if (sifter->failed) {
        return SJ_ENOMEM;
    }
    return sj_assembler_feed(sifter->assembler, sifter->output, sifter->output_count, now_ticks);
}

sj_status sj_sifter_end(sj_sifter *sifter, uint64_t now_ticks)
{
    SJ_TRY(tell_all(sifter, now_ticks));
    const uint32_t changes = sifter->freed != NULL ? sj_freed_changes(sifter->freed) : 0;
    return changes != sifter->seen_changes ? note_change(sifter, changes, now_ticks) : SJ_OK;
}
