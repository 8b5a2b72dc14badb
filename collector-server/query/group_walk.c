/* Design notes. If neither keys nor filters depend on the single call, the group of a dictionary
 * entry is found once per block. Otherwise a small cache finds the group by the keys that depend on
 * the call. A call is added when it ends, because some filters need its end. */
#include "collector-server/query/group_walk.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { RECENT_BITS = 10 };

/* An entry of the cache: a group, and the keys that depend on the call. */
typedef struct sj_recent_group {
    uint32_t number; /* number of the group + 1; 0: none */
    uint32_t entry;  /* index in the dictionary */
    int64_t depth, caller, mark, bucket;
} sj_recent_group;

/* A call that was entered in the block. */
typedef struct sj_walked_call {
    uint64_t start, child; /* time of the entry, and sum of the callees' durations; ticks */
    int64_t start_ns;
    uint32_t entry; /* index in the dictionary */
    uint32_t row;   /* index among the calls of the block */
    bool is_asked;  /* no filter that can be decided at the entry excludes the call */
    /* If the call is open at the end of the block: */
    uint8_t ending;
    uint64_t end, self;
} sj_walked_call;

/* The state while one block is added. */
typedef struct block_walk {
    sj_group_walk *walk;
    sj_block_scan *scan;
    bool filters;          /* each call must be tested against the filters */
    uint32_t base;         /* number of calls that are open since before the block */
    uint32_t caller_depth; /* the `base` for which frame_caller was read; UINT32_MAX: none */
    int64_t
        frame_caller;   /* function_id of the innermost call that is open since before the block */
    size_t next_ending; /* index in the block's endings */
    /* `mark` and `bucket` are valid for calls that begin in [same_from_ns, same_until_ns). */
    int64_t same_from_ns, same_until_ns;
    int64_t mark, bucket;
    size_t open_count;
    sj_status status; /* the error that ended the walk */
} block_walk;

int sj_group_walk_open(sj_group_walk *walk, sqlite3 *database)
{
    static const char process_sql[] =
        "SELECT p.process_id FROM threads AS t JOIN processes AS p ON p.session_id = t.session_id "
        "AND p.number = t.process_number WHERE t.thread_id = ?1";
    static const char module_sql[] = "SELECT module_id FROM functions WHERE function_id = ?1";
    int result = sqlite3_prepare_v3(database, process_sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &walk->process, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v3(database, module_sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &walk->module, NULL);
    }
    return result == SQLITE_OK ? sj_mark_spans_open(&walk->marks, database) : result;
}

void sj_group_walk_close(sj_group_walk *walk)
{
    sqlite3_finalize(walk->process);
    sqlite3_finalize(walk->module);
    sj_mark_spans_close(&walk->marks);
    sj_valued_calls_close(&walk->values);
    sj_call_groups_clear(&walk->groups);
    free(walk->numbers);
    free(walk->recent);
    free(walk->modules);
    free(walk->stack);
    free(walk->open_indexes);
}

int sj_group_walk_start(sj_group_walk *walk, sqlite3 *database, const sj_group_question *asked)
{
    sj_call_groups_clear(&walk->groups);
    walk->stream_id = INT64_MIN;
    walk->marks.is_of_session = false; /* read the marks again: they may have changed */
    walk->asked = *asked;
    walk->asked.values = (sj_value_filter){0};
    return asked->by_value ? sj_valued_calls_open(&walk->values, database, &asked->values)
                           : SQLITE_OK;
}

/* Runs a statement with the parameter ?1 and writes its first column; SJ_NO_KEY if there is no
 * row. */
static int look_up(sqlite3_stmt *statement, int64_t id, int64_t *found)
{
    sqlite3_bind_int64(statement, 1, id);
    const int result = sqlite3_step(statement);
    *found = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : SJ_NO_KEY;
    sqlite3_reset(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int enter_stream(sj_group_walk *walk, const sj_block_scan *scan)
{
    const bool *by = walk->asked.by;
    if (walk->stream_id == scan->stream_id) {
        return SQLITE_OK;
    }
    walk->stream_id = scan->stream_id;
    walk->keys[SJ_KEY_SESSION] = by[SJ_KEY_SESSION] ? scan->session.session_id : 0;
    walk->keys[SJ_KEY_THREAD] = by[SJ_KEY_THREAD] ? scan->thread_id : 0;
    walk->keys[SJ_KEY_STREAM] = by[SJ_KEY_STREAM] ? scan->stream_id : 0;
    walk->keys[SJ_KEY_PROCESS] = 0;
    int result = SQLITE_OK;
    if (by[SJ_KEY_PROCESS]) {
        result = look_up(walk->process, scan->thread_id, &walk->keys[SJ_KEY_PROCESS]);
    }
    return result == SQLITE_OK && by[SJ_KEY_MARK]
               ? sj_mark_spans_enter(&walk->marks, scan->session.session_id)
               : result;
}

static int enter_block(sj_group_walk *walk, const sj_block_scan *scan)
{
    const size_t entries = scan->block.function_count;
    const size_t most_open = sj_scan_most_open(&scan->block) + 1;
    if (sj_array_reserve(&walk->numbers, &walk->number_capacity, 0, entries,
                         sizeof(*walk->numbers)) != SJ_OK ||
        sj_array_reserve(&walk->recent, &walk->recent_capacity, 0, (size_t)1 << RECENT_BITS,
                         sizeof(*walk->recent)) != SJ_OK ||
        sj_array_reserve(&walk->modules, &walk->module_capacity, 0, entries,
                         sizeof(*walk->modules)) != SJ_OK ||
        sj_array_reserve(&walk->stack, &walk->stack_capacity, 0, most_open, sizeof(*walk->stack)) !=
            SJ_OK ||
        sj_array_reserve(&walk->open_indexes, &walk->open_capacity, 0, most_open,
                         sizeof(*walk->open_indexes)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    int result = SQLITE_OK;
    memset(walk->recent, 0, sizeof(*walk->recent) << RECENT_BITS);
    for (size_t i = 0; i < entries && result == SQLITE_OK; ++i) {
        walk->numbers[i] = 0;
        if (walk->asked.by[SJ_KEY_MODULE]) {
            result = look_up(walk->module, scan->function_ids[i], &walk->modules[i]);
        }
    }
    return result == SQLITE_OK && walk->asked.by_value ? sj_valued_calls_enter(&walk->values, scan)
                                                       : result;
}

/* True if a key depends on the single call, not only on its dictionary entry. */
static bool has_keys_of_calls(const sj_group_question *asked)
{
    return asked->by[SJ_KEY_CALLER] || asked->by[SJ_KEY_MARK] || asked->by[SJ_KEY_DEPTH] ||
           asked->by[SJ_KEY_BUCKET];
}

/* True if calls of the block must be tested against the filters: not all are wanted for sure. */
static bool has_filters(const sj_group_walk *walk, const sj_block_scan *scan)
{
    const sj_group_question *asked = &walk->asked;
    const sj_scan_filter *filter = &asked->filter;
    const sj_block_header *header = &scan->block.header;
    return filter->by_function || filter->by_caller || filter->ended ||
           asked->ending != SJ_ANY_ENDING || asked->by_value || filter->min_depth > 0 ||
           filter->max_depth < UINT32_MAX || header->first_ticks < scan->session.first_start ||
           header->last_ticks > scan->session.last_start;
}

/* Returns the function_id of the caller of a call that `above` calls of the block contain. Returns
 * SJ_NO_KEY if there is no recorded caller or it is unknown. */
static int64_t caller_of(block_walk *at, size_t above)
{
    sj_block_scan *scan = at->scan;
    if (above != 0) {
        const int64_t function = scan->function_ids[at->walk->stack[above - 1].entry];
        return function != 0 ? function : SJ_NO_KEY;
    }
    if (at->caller_depth != at->base) {
        sj_stack_frame frame;
        const bool is_known =
            at->base != 0 && sj_block_scan_frame(scan, at->base - 1, &frame) == SQLITE_OK;
        const int64_t function = is_known ? sj_scan_function_id(&scan->session, frame.function) : 0;
        at->frame_caller = function != 0 ? function : SJ_NO_KEY;
        at->caller_depth = at->base;
    }
    return at->frame_caller;
}

/* True if no filter that can be decided at the entry excludes the call. */
static bool is_asked(block_walk *at, uint32_t entry, uint32_t row, uint64_t start, size_t above)
{
    const sj_block_scan *scan = at->scan;
    const sj_scan_filter *filter = &at->walk->asked.filter;
    const int64_t depth = (int64_t)at->base + (int64_t)above;
    if (!scan->function_matches[entry] || depth < filter->min_depth || depth > filter->max_depth ||
        start < scan->session.first_start || start > scan->session.last_start) {
        return false;
    }
    if (filter->by_caller) {
        const int64_t caller = caller_of(at, above);
        if (caller == SJ_NO_KEY || caller != filter->caller_function_id) {
            return false;
        }
    }
    return !at->walk->asked.by_value || sj_valued_calls_has(&at->walk->values, &scan->block, row);
}

/* Returns the start of the bucket that contains a time. */
static int64_t bucket_of(int64_t ns, int64_t bucket_ns)
{
    const int64_t into = ns % bucket_ns;
    int64_t bucket;
    const bool below = __builtin_sub_overflow(ns - into, into < 0 ? bucket_ns : 0, &bucket);
    return below ? -INT64_MAX : bucket; /* INT64_MIN is SJ_NO_KEY */
}

/* Finds the mark and the bucket of a time, and until when they are the same. */
static void find_moment(block_walk *at, int64_t ns)
{
    const sj_group_question *asked = &at->walk->asked;
    at->same_from_ns = ns;
    at->same_until_ns = INT64_MAX;
    if (asked->by[SJ_KEY_MARK]) {
        at->mark = sj_mark_spans_at(&at->walk->marks, ns, &at->same_until_ns);
    }
    if (asked->by[SJ_KEY_BUCKET]) {
        int64_t until;
        at->bucket = bucket_of(ns, asked->bucket_ns);
        if (!__builtin_add_overflow(at->bucket, asked->bucket_ns, &until) &&
            until < at->same_until_ns) {
            at->same_until_ns = until;
        }
    }
}

/* Finds the group of calls with these keys, or adds it. Returns the group's number + 1. On an
 * error, sets at->status and returns 0. */
static __attribute__((noinline)) uint32_t find_group(block_walk *at, const sj_recent_group *keys)
{
    sj_group_walk *walk = at->walk;
    const bool *by = walk->asked.by;
    const int64_t function = at->scan->function_ids[keys->entry];
    walk->keys[SJ_KEY_FUNCTION] = !by[SJ_KEY_FUNCTION] ? 0 : function != 0 ? function : SJ_NO_KEY;
    walk->keys[SJ_KEY_MODULE] = by[SJ_KEY_MODULE] ? walk->modules[keys->entry] : 0;
    walk->keys[SJ_KEY_CALLER] = keys->caller;
    walk->keys[SJ_KEY_MARK] = keys->mark;
    walk->keys[SJ_KEY_DEPTH] = keys->depth;
    walk->keys[SJ_KEY_BUCKET] = keys->bucket;
    uint32_t number = 0;
    at->status = sj_call_groups_find(&walk->groups, walk->keys, &number);
    return at->status == SJ_OK ? number + 1 : 0;
}

/* Returns the group of all calls of a dictionary entry, like find_group. */
static ALWAYS_INLINE uint32_t group_of_entry(block_walk *at, uint32_t entry)
{
    uint32_t *number = &at->walk->numbers[entry];
    if (__builtin_expect(*number == 0, 0)) {
        *number = find_group(at, &(sj_recent_group){.entry = entry});
    }
    return *number;
}

/* Returns the group of a call, like find_group. */
static uint32_t group_of(block_walk *at, uint32_t entry, int64_t start_ns, size_t above)
{
    const bool *by = at->walk->asked.by;
    if ((by[SJ_KEY_MARK] || by[SJ_KEY_BUCKET]) &&
        (start_ns < at->same_from_ns || start_ns >= at->same_until_ns)) {
        find_moment(at, start_ns);
    }
    const int64_t caller = by[SJ_KEY_CALLER] ? caller_of(at, above) : 0;
    const int64_t depth = by[SJ_KEY_DEPTH] ? (int64_t)(at->base + above) : 0;
    const uint32_t hash =
        (entry + (uint32_t)caller * 31 + (uint32_t)depth * 1009) * UINT32_C(0x9e3779b1);
    sj_recent_group *recent = &at->walk->recent[hash >> (32 - RECENT_BITS)];
    if (recent->number == 0 || recent->entry != entry || recent->caller != caller ||
        recent->depth != depth || recent->mark != at->mark || recent->bucket != at->bucket) {
        *recent = (sj_recent_group){0, entry, depth, caller, at->mark, at->bucket};
        recent->number = find_group(at, recent);
    }
    return recent->number;
}

/* Returns the ending of the call whose exit is `event`. Pass events in ascending order. */
static int ending_at(block_walk *at, size_t event)
{
    const sj_block *block = &at->scan->block;
    while (at->next_ending < block->ending_count && block->endings[at->next_ending].event < event) {
        ++at->next_ending;
    }
    return at->next_ending < block->ending_count && block->endings[at->next_ending].event == event
               ? (int)block->endings[at->next_ending].ending
               : SJ_ENDING_RETURNED;
}

static bool has_asked_duration(const block_walk *at, int64_t duration_ns)
{
    const sj_group_question *asked = &at->walk->asked;
    return !asked->filter.ended ||
           (duration_ns >= asked->filter.min_duration_ns && duration_ns <= asked->longest_ns);
}

/* A call that ended. Passed by value, so that it stays in registers. */
typedef struct ended_call {
    uint32_t entry;
    size_t above; /* number of calls of the block that contain this call */
    int64_t start_ns;
    uint64_t end, self; /* ticks; `self` may be ALL_OF_IT */
} ended_call;

/* The self time of a call without callees. Its value in ns is the duration in ns, so that rounding
 * cannot make them differ. */
#define ALL_OF_IT UINT64_MAX

static ALWAYS_INLINE uint64_t self_of(uint64_t duration, uint64_t child)
{
    return child != 0 ? duration - child : ALL_OF_IT;
}

/* Adds a call that ended. `picks`: keys or filters depend on the call. On an error, sets at->status
 * and returns false. */
static ALWAYS_INLINE bool add_ended(block_walk *at, const ended_call call, bool picks)
{
    const sj_scan_session *session = &at->scan->session;
    sj_group_walk *walk = at->walk;
    const int64_t duration_ns = sj_scan_ns(session, call.end) - call.start_ns;
    if (picks && !has_asked_duration(at, duration_ns)) {
        return true;
    }
    const uint32_t number = picks ? group_of(at, call.entry, call.start_ns, call.above)
                                  : group_of_entry(at, call.entry);
    if (__builtin_expect(number == 0, 0)) {
        return false;
    }
    at->status = sj_call_groups_add(
        &walk->groups, number - 1, duration_ns,
        call.self == ALL_OF_IT ? duration_ns : sj_ticks_to_ns(&session->scale, call.self),
        walk->asked.histogram);
    return at->status == SJ_OK;
}

static bool has_asked_ending(block_walk *at, size_t event)
{
    const int ending = at->walk->asked.ending;
    return ending == SJ_ANY_ENDING || ending_at(at, event) == ending;
}

/* Adds the calls that were entered and left in the block. Returns the number of calls that are
 * still on the stack: entered in the block, and open at its end. Returns SIZE_MAX if at->status is
 * set, or if the events contradict each other.
 *
 * `wide`: symbols have 32 bits, not 16. `picks`: keys or filters depend on the call. Both are
 * constants where this function is inlined. */
static ALWAYS_INLINE size_t add_events(block_walk *at, bool wide, bool picks)
{
    const sj_block block = at->scan->block; /* a copy, so that writes cannot alias it */
    const size_t event_count = block.header.event_count;
    sj_walked_call *stack = at->walk->stack;
    size_t stack_count = 0;
    uint32_t row = 0;
    for (size_t event = 0; event < event_count; ++event) {
        const uint32_t symbol = wide ? block.symbols32[event] : block.symbols16[event];
        const uint64_t now = block.ticks[event];
        ended_call call = {.above = stack_count, .end = now};
        bool asked = true;
        if (symbol == SJ_EVENT_LEAVE) {
            if (stack_count == 0 && at->base == 0) {
                return SIZE_MAX;
            }
            if (stack_count == 0) {
                --at->base;
                continue;
            }
            const sj_walked_call *left = &stack[--stack_count];
            call = (ended_call){left->entry, stack_count, left->start_ns, now,
                                self_of(now - left->start, left->child)};
            asked = left->is_asked;
            if (stack_count != 0) {
                stack[stack_count - 1].child += now - left->start;
            }
        } else {
            if (symbol > block.function_count || row == block.header.call_count) {
                return SIZE_MAX;
            }
            call.entry = symbol - 1;
            call.start_ns = sj_scan_ns(&at->scan->session, now);
            asked = !picks || !at->filters || is_asked(at, call.entry, row, now, stack_count);
            if (event + 1 == event_count || (wide ? block.symbols32[event + 1]
                                                  : block.symbols16[event + 1]) != SJ_EVENT_LEAVE) {
                sj_walked_call *entered = &stack[stack_count++];
                entered->start = now;
                entered->start_ns = call.start_ns;
                entered->child = 0;
                entered->entry = call.entry;
                entered->row = row++;
                entered->is_asked = asked;
                continue;
            }
            call.end = block.ticks[++event]; /* the next event is the exit of this call */
            call.self = ALL_OF_IT;
            ++row;
            if (stack_count != 0) {
                stack[stack_count - 1].child += call.end - now;
            }
        }
        if ((!picks || (asked && has_asked_ending(at, event))) && !add_ended(at, call, picks)) {
            return SIZE_MAX;
        }
    }
    return row == block.header.call_count ? stack_count : SIZE_MAX;
}

static size_t add_any_events(block_walk *at, bool picks)
{
    if (at->scan->block.symbols16 != NULL) {
        return picks ? add_events(at, false, true) : add_events(at, false, false);
    }
    return picks ? add_events(at, true, true) : add_events(at, true, false);
}

/* Callback of sj_late_exits_find: writes the end of a call on the stack. */
static void set_late_exit(void *context, size_t position, const sj_deferred_exit *leave)
{
    sj_walked_call *call = &((sj_group_walk *)context)->stack[position];
    call->end = leave->end_ticks;
    call->self =
        self_of(leave->end_ticks - call->start, leave->end_ticks - call->start - leave->self_ticks);
    call->ending = (uint8_t)leave->ending;
}

/* True if the query wants calls with this ending. A call without a known end counts as open. */
static bool is_asked_ending(const sj_group_question *asked, int ending)
{
    return asked->ending == SJ_ANY_ENDING || asked->ending == ending ||
           (asked->ending == SJ_ENDING_OPEN && ending == SJ_NOT_ENDED);
}

/* Adds a call that is open at the end of the block. The call may have ended in a later block. */
static bool add_open(block_walk *at, const sj_walked_call *call, size_t above)
{
    const sj_group_question *asked = &at->walk->asked;
    if (!call->is_asked || !is_asked_ending(asked, call->ending)) {
        return true;
    }
    if (call->ending != SJ_NOT_ENDED) {
        return add_ended(
            at, (ended_call){call->entry, above, call->start_ns, call->end, call->self}, true);
    }
    if (asked->filter.ended) {
        return true;
    }
    const uint32_t number = group_of(at, call->entry, call->start_ns, above);
    if (number != 0) {
        ++at->walk->groups.groups[number - 1].open;
    }
    return number != 0;
}

/* Adds the `stack_count` calls that are open at the end of the block. */
static int add_all_open(block_walk *at, size_t stack_count)
{
    sj_group_walk *walk = at->walk;
    const sj_block *block = &at->scan->block;
    sj_lost_calls lost = {0};
    for (size_t i = 0; i < stack_count; ++i) {
        sj_walked_call *call = &walk->stack[i];
        call->ending = SJ_NOT_ENDED;
        walk->open_indexes[i] =
            block->header.first_call + call->row + sj_lost_calls_before(&lost, block, call->row);
    }
    const int result = sj_late_exits_find(&at->scan->late, walk->stream_id, walk->open_indexes,
                                          stack_count, set_late_exit, walk);
    for (size_t i = 0; result == SQLITE_OK && i < stack_count; ++i) {
        if (!add_open(at, &walk->stack[i], i)) {
            break;
        }
    }
    return result;
}

int sj_group_walk_add(sj_group_walk *walk, sj_block_scan *scan)
{
    int result = enter_stream(walk, scan);
    if (result == SQLITE_OK) {
        result = enter_block(walk, scan);
    }
    if (result != SQLITE_OK || (walk->asked.by_value && walk->values.count == 0)) {
        return result;
    }
    block_walk at = {.walk = walk,
                     .scan = scan,
                     .filters = has_filters(walk, scan),
                     .base = scan->block.header.open_depth,
                     .caller_depth = UINT32_MAX};
    const size_t stack_count = add_any_events(&at, at.filters || has_keys_of_calls(&walk->asked));
    if (stack_count != SIZE_MAX && stack_count != 0) {
        result = add_all_open(&at, stack_count);
    }
    if (at.status != SJ_OK) {
        return at.status == SJ_ENOMEM ? SQLITE_NOMEM : SQLITE_FULL;
    }
    if (stack_count == SIZE_MAX) {
        sj_block_scan_warn(scan, "its events contradict each other");
    }
    return result;
}
