#include "agent/drain/untimed_records.h"

#include "agent/assembler/untimed_entry.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

enum {
    /* limit of waiting records and values; at the limit they get times without a later timed
     * record */
    MOST_WAITING = 1 << 16,
    MOST_OPEN = 1 << 16, /* limit of timed open calls that are tracked */
    TICKS_BYTES = 6
};

/* A call whose entry was timed. */
typedef struct open_call {
    uint64_t stack;
    uint64_t ticks48;
    uint64_t waited; /* ticks that the thread had waited for the drain before the call */
    uint32_t function;
} open_call;

/* An untimed record that waits for the time of a later record. */
typedef struct waiting_record {
    uint32_t record; /* its index in the output */
    /* index + 1 of the waiting entry whose call contains the time before this record; 0: none */
    uint32_t owner;
    uint32_t parts; /* for an entry: number of parts of the call's own time */
    bool is_whole;  /* for an entry: its exit waits, too */
    double ticks;   /* for an entry: first the duration of its callees, then of each of its parts */
} waiting_record;

struct sj_untimed_records {
    sj_call_timing *timing;
    uint64_t low, span; /* bounds of the thread's own stack */
    uint64_t base;      /* base address of short records; 0: they hold addresses */
    uint64_t last;      /* stack of the last entry or exit on that stack, relative to `base` */
    bool knows_last;    /* `last` is valid */
    bool knows_before;
    uint64_t before48; /* time of the last timed record */
    uint64_t waited;   /* ticks that the thread has waited for the drain so far */
    sj_record *output; /* records with times; from `ready` on, records that wait */
    size_t count, capacity, ready;
    waiting_record *waiting; /* the untimed ones of the waiting records */
    size_t waiting_count, waiting_capacity, waiting_entries;
    uint64_t undecided_calls; /* see sj_untimed_records_undecided_calls */
    uint32_t *path;           /* open entries among the waiting records, while times are computed */
    size_t path_capacity;
    open_call *open;
    size_t open_count, open_capacity;
};

sj_untimed_records *sj_untimed_records_new(sj_call_timing *timing, uint64_t stack_low,
                                           uint64_t stack_high, bool has_distances)
{
    sj_untimed_records *untimed = calloc(1, sizeof(*untimed));
    if (untimed != NULL) {
        untimed->timing = timing;
        untimed->low = stack_low;
        untimed->span = stack_high > stack_low ? stack_high - stack_low : 0;
        untimed->base = has_distances ? sj_short_base(stack_low) : 0;
    }
    return untimed;
}

void sj_untimed_records_free(sj_untimed_records *untimed)
{
    if (untimed != NULL) {
        free(untimed->output);
        free(untimed->waiting);
        free(untimed->path);
        free(untimed->open);
        free(untimed);
    }
}

static uint32_t function_of(const sj_record *record)
{
    return sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
}

static bool is_of_kind(const sj_record *record, sj_record_kind kind)
{
    return sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS == (uint32_t)kind;
}

static uint64_t ticks_between(uint64_t from48, uint64_t to48)
{
    const uint64_t ticks = (to48 - from48) & TICKS48_MASK;
    return ticks <= TICKS48_MASK / 2 ? ticks : 0; /* 0: the clock went back */
}

static void set_ticks(sj_record *record, uint64_t ticks48)
{
    memcpy(record->bytes, &ticks48, TICKS_BYTES);
}

/* --- durations of timed calls ----------------------------------------------------------------- */

static void open_one(sj_untimed_records *untimed, const open_call *call)
{
    while (untimed->open_count != 0 &&
           untimed->open[untimed->open_count - 1].stack <= call->stack) {
        untimed->open_count--;
    }
    if (untimed->open_count == MOST_OPEN) {
        untimed->open_count = 0;
    }
    untimed->open[untimed->open_count++] = *call;
}

static void close_one(sj_untimed_records *untimed, const open_call *exit)
{
    while (untimed->open_count != 0 && untimed->open[untimed->open_count - 1].stack < exit->stack) {
        untimed->open_count--;
    }
    if (untimed->open_count == 0) {
        return;
    }
    const open_call *call = &untimed->open[untimed->open_count - 1];
    if (call->stack == exit->stack && call->function == exit->function) {
        const uint64_t ticks = ticks_between(call->ticks48, exit->ticks48);
        const uint64_t waited = untimed->waited - call->waited;
        untimed->open_count--;
        sj_call_timing_add(untimed->timing, call->function, ticks > waited ? ticks - waited : 0,
                           exit->ticks48);
    }
}

/* True if an untimed exit ends a call whose entry was timed. */
static bool leaves_timed(sj_untimed_records *untimed, const sj_record *exit)
{
    const uint64_t stack = sj_record_frame(exit);
    while (untimed->open_count != 0 && untimed->open[untimed->open_count - 1].stack < stack) {
        untimed->open_count--;
    }
    const open_call *call =
        untimed->open_count != 0 ? &untimed->open[untimed->open_count - 1] : NULL;
    const bool leaves = call != NULL && call->stack == stack && call->function == function_of(exit);
    untimed->open_count -= leaves;
    return leaves;
}

/* Tracks a timed entry or exit. Untimed calls need not be tracked: if an untimed call contains a
 * timed record, its times are as exact as the times of its neighbours. */
static void follow(sj_untimed_records *untimed, const sj_record *record)
{
    const uint64_t stack = sj_record_stack(record);
    if (untimed->timing == NULL || sj_record_is_managed(stack)) {
        return;
    }
    const open_call call = {.stack = sj_record_frame(record),
                            .ticks48 = sj_record_ticks48(record),
                            .waited = untimed->waited,
                            .function = function_of(record)};
    if (is_of_kind(record, SJ_RECORD_ENTER)) {
        open_one(untimed, &call);
    } else {
        close_one(untimed, &call);
    }
}

/* --- times ------------------------------------------------------------------------------------ */

/* Finds the waiting calls whose exits wait, too, and computes their durations. Returns the sum of
 * the times that are known from them. Writes the number of unknown times to `*unknown`. */
static double find_known_times(sj_untimed_records *untimed, size_t *unknown)
{
    size_t depth = 0;
    for (size_t i = 0; i < untimed->waiting_count; i++) {
        waiting_record *waiting = &untimed->waiting[i];
        const sj_record *record = &untimed->output[waiting->record];
        waiting->owner = depth != 0 ? untimed->path[depth - 1] + 1 : 0;
        waiting->parts = 0;
        waiting->is_whole = false;
        waiting->ticks = 0;
        if (waiting->owner != 0) {
            untimed->waiting[waiting->owner - 1].parts++;
        }
        if (is_of_kind(record, SJ_RECORD_ENTER)) {
            untimed->path[depth++] = (uint32_t)i;
            continue;
        }
        waiting_record *entry = depth != 0 ? &untimed->waiting[untimed->path[depth - 1]] : NULL;
        const sj_record *entered = entry != NULL ? &untimed->output[entry->record] : NULL;
        if (entry == NULL || sj_record_frame(entered) != sj_record_frame(record) ||
            function_of(entered) != function_of(record)) {
            depth = 0; /* an open call here has no exit, or its exit does not wait */
            continue;
        }
        const double mean = sj_call_timing_mean(untimed->timing, function_of(record));
        entry->is_whole = mean >= 0;
        depth--;
        /* Until here, `ticks` is the duration of its callees. */
        const double lasts = mean > entry->ticks ? mean : entry->ticks;
        if (depth != 0) {
            untimed->waiting[untimed->path[depth - 1]].ticks += lasts;
        }
        entry->ticks = lasts - entry->ticks;
        if (entry->parts != 1) {
            entry->ticks /= entry->parts;
        }
    }
    double known = 0;
    *unknown = 1; /* the time after the last record */
    for (size_t i = 0; i < untimed->waiting_count; i++) {
        const uint32_t owner = untimed->waiting[i].owner;
        const bool is_known = owner != 0 && untimed->waiting[owner - 1].is_whole;
        known += is_known ? untimed->waiting[owner - 1].ticks : 0;
        *unknown += !is_known;
    }
    return known;
}

/* Reports the waiting calls to the call timing: each may have lasted as long as the whole time
 * between the timed records. */
static void tell_length(sj_untimed_records *untimed, uint64_t ticks)
{
    sj_call_timing *timing = untimed->timing;
    if (timing == NULL || (ticks < timing->late_ticks && timing->suspects == 0)) {
        return;
    }
    timing->stretch = timing->stretch == UINT32_MAX ? 1 : timing->stretch + 1;
    for (size_t i = 0; i < untimed->waiting_count; i++) {
        const uint32_t function = function_of(&untimed->output[untimed->waiting[i].record]);
        if (ticks >= timing->late_ticks) {
            sj_call_timing_late(timing, function, timing->stretch);
        } else {
            sj_call_timing_on_time(timing, function);
        }
    }
}

/* Gives the waiting records times before `until48`. `is_theirs`: no other known work took time
 * since the last timed record. */
static sj_status give_times(sj_untimed_records *untimed, uint64_t until48, bool is_theirs)
{
    if (untimed->waiting_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&untimed->path, &untimed->path_capacity, 0, untimed->waiting_count,
                            sizeof(*untimed->path)));
    const uint64_t from48 = untimed->knows_before ? untimed->before48 : until48;
    const double between = (double)ticks_between(from48, until48);
    size_t unknown = 0;
    const double known = find_known_times(untimed, &unknown);
    const double scale = known > between ? between / known : 1;
    const double rest = known < between ? (between - known) / (double)unknown : 0;
    double at = 0;
    for (size_t i = 0; i < untimed->waiting_count; i++) {
        const uint32_t owner = untimed->waiting[i].owner;
        const bool is_known = owner != 0 && untimed->waiting[owner - 1].is_whole;
        at += is_known ? untimed->waiting[owner - 1].ticks * scale : rest;
        at = at < between ? at : between;
        set_ticks(&untimed->output[untimed->waiting[i].record],
                  (from48 + (uint64_t)at) & TICKS48_MASK);
    }
    if (is_theirs) {
        tell_length(untimed, (uint64_t)between);
    }
    untimed->waiting_count = 0;
    untimed->waiting_entries = 0;
    return SJ_OK;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Returns the record with the marks that the assembler expects for a record without a clock. */
static sj_record untimed_record(sj_untimed_records *untimed, const sj_record *record)
{
    sj_record marked = *record;
    const int mark = is_of_kind(record, SJ_RECORD_ENTER) ? SJ_UNTIMED_ENTRY
                     : leaves_timed(untimed, record)     ? SJ_UNTIMED_EXIT
                                                         : 0;
    marked.bytes[TICKS_BYTES] &= (uint8_t)~SJ_STACK_UNTIMED;
    marked.bytes[TICKS_BYTES] |= (uint8_t)mark;
    return marked;
}

/* Appends a record. reserve_records has reserved the space. */
static void put(sj_untimed_records *untimed, const sj_record *record, bool waits)
{
    if (waits) {
        untimed->waiting[untimed->waiting_count++].record = (uint32_t)untimed->count;
        untimed->waiting_entries += is_of_kind(record, SJ_RECORD_ENTER);
    }
    untimed->output[untimed->count++] = waits ? untimed_record(untimed, record) : *record;
}

static sj_status reserve_records(sj_untimed_records *untimed, size_t places)
{
    SJ_TRY(sj_array_reserve(&untimed->output, &untimed->capacity, untimed->count,
                            places * SJ_SHORTS, sizeof(*untimed->output)));
    SJ_TRY(sj_array_reserve(&untimed->waiting, &untimed->waiting_capacity, untimed->waiting_count,
                            places * SJ_SHORTS, sizeof(*untimed->waiting)));
    return sj_array_reserve(&untimed->open, &untimed->open_capacity, untimed->open_count,
                            places * SJ_SHORTS, sizeof(*untimed->open));
}

static void read_short(sj_untimed_records *untimed, uint32_t word, uint64_t *undecided)
{
    if (sj_short_function(word) == 0) {
        return;
    }
    if (!untimed->knows_last || !sj_word_is_short(word)) {
        *undecided += 1;
        untimed->undecided_calls += sj_word_is_short(word) && !sj_short_is_exit(word);
        return;
    }
    untimed->last = sj_short_stack(word, untimed->last);
    const uint64_t mark = SJ_STACK_UNTIMED | (sj_short_is_tail_call(word) ? SJ_STACK_TAIL_CALL : 0);
    const uint64_t stack = (untimed->base + untimed->last) | mark;
    const uint32_t tag = sj_record_make_tag(
        sj_short_is_exit(word) ? SJ_RECORD_LEAVE : SJ_RECORD_ENTER, sj_short_function(word));
    const sj_record record = sj_record_make(0, stack, tag);
    put(untimed, &record, true);
}

static void keep_place(sj_untimed_records *untimed, const sj_record *record)
{
    const uint64_t stack = sj_record_frame(record);
    if (stack - untimed->low < untimed->span) {
        untimed->last = stack - untimed->base;
        untimed->knows_last = true;
    }
}

/* Returns the time until which the thread worked before a record. That is the record's time, or the
 * time when the thread began to wait for the drain. A wait for the drain is not part of a call's
 * duration. */
static uint64_t end_of_work(sj_untimed_records *untimed, const sj_record *record)
{
    const uint64_t at48 = sj_record_ticks48(record);
    if (!is_of_kind(record, SJ_RECORD_NOTE) || function_of(record) != SJ_NOTE_WAITED ||
        !untimed->knows_before) {
        return at48;
    }
    const uint64_t most = ticks_between(untimed->before48, at48);
    const uint64_t waited = sj_record_stack(record) < most ? sj_record_stack(record) : most;
    untimed->waited += waited;
    return (at48 - waited) & TICKS48_MASK;
}

static sj_status read_whole(sj_untimed_records *untimed, const sj_record *record)
{
    const bool is_call = sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS <= SJ_RECORD_LEAVE;
    if (is_call) {
        keep_place(untimed, record);
    }
    if (is_of_kind(record, SJ_RECORD_VALUE)) {
        put(untimed, record, false); /* it stays with the record after it */
        return SJ_OK;
    }
    if (is_call && sj_record_is_untimed(sj_record_stack(record))) {
        put(untimed, record, true);
        return SJ_OK;
    }
    SJ_TRY(give_times(untimed, end_of_work(untimed, record), is_call));
    untimed->before48 = sj_record_ticks48(record);
    untimed->knows_before = true;
    if (is_call) {
        follow(untimed, record);
    }
    put(untimed, record, false);
    untimed->ready = untimed->count;
    return SJ_OK;
}

/* Removes the records that were lent, and moves the waiting records to the front. */
static void drop_lent(sj_untimed_records *untimed)
{
    if (untimed->ready == 0) {
        return;
    }
    memmove(untimed->output, untimed->output + untimed->ready,
            (untimed->count - untimed->ready) * sizeof(*untimed->output));
    for (size_t i = 0; i < untimed->waiting_count; i++) {
        untimed->waiting[i].record -= (uint32_t)untimed->ready;
    }
    untimed->count -= untimed->ready;
    untimed->ready = 0;
}

static sj_status settle(sj_untimed_records *untimed, uint64_t now_ticks)
{
    SJ_TRY(give_times(untimed, now_ticks & TICKS48_MASK, false));
    untimed->before48 = now_ticks & TICKS48_MASK;
    untimed->ready = untimed->count;
    return SJ_OK;
}

sj_status sj_untimed_records_read(sj_untimed_records *untimed, const sj_record *places,
                                  size_t count, uint64_t now_ticks, sj_record **records,
                                  size_t *record_count, uint64_t *undecided)
{
    drop_lent(untimed);
    *undecided = 0;
    untimed->undecided_calls = 0;
    SJ_TRY(reserve_records(untimed, count));
    for (size_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&places[i]);
        if (tag != 0 && !sj_word_is_short(tag)) {
            SJ_TRY(read_whole(untimed, &places[i]));
            continue;
        }
        for (uint32_t part = 0; part < SJ_SHORTS; part++) {
            read_short(untimed, sj_record_word(&places[i], part), undecided);
        }
    }
    if (untimed->count - untimed->ready >= MOST_WAITING) {
        SJ_TRY(settle(untimed, now_ticks));
    }
    *records = untimed->output;
    *record_count = untimed->ready;
    return SJ_OK;
}

uint64_t sj_untimed_records_undecided_calls(const sj_untimed_records *untimed)
{
    return untimed->undecided_calls;
}

sj_status sj_untimed_records_settle(sj_untimed_records *untimed, uint64_t now_ticks,
                                    sj_record **records, size_t *record_count)
{
    drop_lent(untimed);
    SJ_TRY(settle(untimed, now_ticks));
    *records = untimed->output;
    *record_count = untimed->ready;
    return SJ_OK;
}

bool sj_untimed_records_are_kept(const sj_untimed_records *untimed)
{
    return untimed->count > untimed->ready;
}

size_t sj_untimed_records_waiting(const sj_untimed_records *untimed, size_t *entries)
{
    *entries = untimed->waiting_entries;
    return untimed->waiting_count;
}

void sj_untimed_records_lost(sj_untimed_records *untimed)
{
    untimed->knows_last = false;
    untimed->open_count = 0;
}
