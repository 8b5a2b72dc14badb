/* The table function call_aggregate(session_id [, from_ns, to_ns [, stream_id]]): sums of calls per
 * function. total_ns counts the time of recursive calls once; duration_ns is the plain sum.
 *
 * Design notes. The sums are over calls that began in [from_ns, to_ns) and ended at any time, so
 * that adjacent windows add up. The sums of each block are computed separately (block_sums.h),
 * unless a server's cache has them. The end of a call in a later block comes from that block's late
 * exits. Counted calls that are open at the end of a block are carried to the next block of the
 * stream. So recursion across blocks is seen. Sums are in ticks and converted to ns once. */
#include "collector-server/query/sums_cache.h"
#include "collector-server/query/table_function.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_FUNCTION_ID,
    COLUMN_CALLS,
    COLUMN_TOTAL_NS,
    COLUMN_SELF_NS,
    COLUMN_DURATION_NS,
    COLUMN_MIN_NS,
    COLUMN_MAX_NS,
    COLUMN_OPEN,
    COLUMN_SESSION_ID, /* from here on: hidden columns, the arguments */
    COLUMN_FROM_NS,
    COLUMN_TO_NS,
    COLUMN_STREAM_ID
};

enum { ARGUMENTS = 4 };

/* The sums of one function over all blocks. */
typedef struct session_sum {
    sj_function_sum sum;
    uint32_t active; /* number of carried calls of the function */
    uint32_t depth;  /* depth of the outermost carried call */
} session_sum;

typedef struct aggregate_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan scan;
    bool scan_open;
    session_sum *sums; /* by session-wide function id */
    size_t sum_count;
    sj_block_summer summer;
    sj_block_sums block_sums;    /* sums of the current block, if the block was read */
    const sj_block_sums *cached; /* sums of the current block from the cache; NULL: it was read */
    uint64_t *open_indexes;      /* numbers of the open calls, for sj_late_exits_find */
    size_t open_index_capacity;
    sj_open_sum *carried; /* open counted calls of the stream, outermost first */
    bool *nested;         /* parallel to `carried`: inside another call of the same function */
    size_t carried_count, carried_capacity, nested_capacity;
    size_t first_open; /* index in `carried` of the current block's first call */
    int64_t stream_id;
    size_t at; /* current row: a session-wide function id */
    int64_t arguments[ARGUMENTS];
} aggregate_cursor;

/* The sums of a block with more open calls at its start or end are not put into the cache. */
enum { CACHED_FRAMES_MAX = 1024 };

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    aggregate_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void release_cached(aggregate_cursor *cursor)
{
    if (cursor->cached != NULL) {
        sj_sums_cache_release(cursor->scan.state->sums, cursor->cached);
        cursor->cached = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    release_cached(cursor);
    if (cursor->scan_open) {
        sj_block_scan_close(&cursor->scan);
    }
    free(cursor->sums);
    sj_block_summer_deinit(&cursor->summer);
    sj_block_sums_deinit(&cursor->block_sums);
    free(cursor->open_indexes);
    free(cursor->carried);
    free(cursor->nested);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static bool find_cached(void *context, const sj_block_place *place)
{
    aggregate_cursor *cursor = context;
    release_cached(cursor);
    cursor->cached = sj_sums_cache_hold(cursor->scan.state->sums, place);
    return cursor->cached != NULL;
}

static int reserve_memory(aggregate_cursor *cursor, const sj_block_sums *part)
{
    uint32_t highest = 0;
    for (size_t i = 0; i < part->function_count; ++i) {
        highest = part->functions[i] > highest ? part->functions[i] : highest;
    }
    if (part->function_count != 0 &&
        sj_array_reserve(&cursor->sums, &cursor->sum_count, 0, (size_t)highest + 1,
                         sizeof(*cursor->sums)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    if (sj_array_reserve(&cursor->open_indexes, &cursor->open_index_capacity, 0, part->open_count,
                         sizeof(*cursor->open_indexes)) != SJ_OK ||
        sj_array_reserve(&cursor->carried, &cursor->carried_capacity, cursor->carried_count,
                         part->open_count, sizeof(*cursor->carried)) != SJ_OK ||
        sj_array_reserve(&cursor->nested, &cursor->nested_capacity, cursor->carried_count,
                         part->open_count, sizeof(*cursor->nested)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

/* Ends the carried calls of `depth` and deeper. */
static void end_carried(aggregate_cursor *cursor, uint32_t depth)
{
    while (cursor->carried_count != 0 &&
           cursor->carried[cursor->carried_count - 1].depth >= depth) {
        --cursor->sums[cursor->carried[--cursor->carried_count].function].active;
    }
}

/* True if a carried call is open at the start of the block. A call at a depth in DEEP_FRAMES blocks
 * counts as open, because its number is not known there. */
static bool still_open(const sj_block_sums *part, const sj_open_sum *call)
{
    if (call->depth >= part->open_depth) {
        return false;
    }
    const uint32_t deep = part->stack_frames;
    return call->depth < deep || (call->depth - deep < part->frame_count &&
                                  part->frames[call->depth - deep] == call->index);
}

static void enter_stream(aggregate_cursor *cursor)
{
    if (cursor->stream_id != cursor->scan.stream_id) {
        end_carried(cursor, 0);
        cursor->stream_id = cursor->scan.stream_id;
    }
}

/* Ends the carried calls that are not open at the start of the block: their exits were lost. */
static void end_missing(aggregate_cursor *cursor, const sj_block_sums *part)
{
    for (size_t i = 0; i < cursor->carried_count; ++i) {
        if (!still_open(part, &cursor->carried[i])) {
            end_carried(cursor, cursor->carried[i].depth); /* also ends the calls inside it */
            break;
        }
    }
}

/* Returns the ticks of a function's calls in the block that are nested only because a carried call
 * of the function contains them. */
static uint64_t nested_in_carried(const session_sum *sum, const sj_block_sums *part, size_t place)
{
    if (sum->active == 0) {
        return 0;
    }
    /* index in `ends` of the function's outermost carried call */
    const size_t end_index = part->open_depth - 1 - sum->depth;
    const sj_function_sum *block_sums = &part->sums[place];
    return end_index < part->end_count ? part->ends[end_index]
                                       : block_sums->duration_ticks - block_sums->nested_ticks;
}

static void add_functions(aggregate_cursor *cursor, const sj_block_sums *part)
{
    for (size_t i = 0; i < part->function_count; ++i) {
        const sj_function_sum *block_sums = &part->sums[i];
        session_sum *to = &cursor->sums[part->functions[i]];
        sj_function_sum *sum = &to->sum;
        if (block_sums->calls != 0) {
            sum->min_ticks = sum->calls == 0 || block_sums->min_ticks < sum->min_ticks
                                 ? block_sums->min_ticks
                                 : sum->min_ticks;
            sum->max_ticks =
                block_sums->max_ticks > sum->max_ticks ? block_sums->max_ticks : sum->max_ticks;
        }
        sum->calls += block_sums->calls;
        sum->nested_ticks += block_sums->nested_ticks + nested_in_carried(to, part, i);
        sum->self_ticks += block_sums->self_ticks;
        sum->duration_ticks += block_sums->duration_ticks;
        sum->open += block_sums->open;
    }
}

/* Callback of sj_late_exits_find: adds a carried call that ended in a later block. */
static void add_late_exit(void *context, size_t position, const sj_deferred_exit *leave)
{
    aggregate_cursor *cursor = context;
    const sj_open_sum *call = &cursor->carried[cursor->first_open + position];
    sj_function_sum *sum = &cursor->sums[call->function].sum;
    if (sum->open != 0) {
        sum->min_ticks = sum->calls == 0 ? UINT64_MAX : sum->min_ticks;
        sj_function_sum_add(sum, leave->end_ticks - call->start_ticks, leave->self_ticks,
                            !cursor->nested[cursor->first_open + position]);
        --sum->open;
    }
}

/* Ends the carried calls that ended in the block. Carries the calls of the block that are open at
 * its end, and adds the calls that end in a later block. */
static int carry_open(aggregate_cursor *cursor, const sj_block_sums *part)
{
    end_carried(cursor, part->open_depth - (uint32_t)part->end_count);
    cursor->first_open = cursor->carried_count;
    for (size_t i = 0; i < part->open_count; ++i) {
        const sj_open_sum *call = &part->open[i];
        session_sum *sum = &cursor->sums[call->function];
        cursor->nested[cursor->carried_count] = sum->active != 0;
        cursor->carried[cursor->carried_count++] = *call;
        sum->depth = sum->active++ == 0 ? call->depth : sum->depth;
        cursor->open_indexes[i] = call->index;
    }
    return sj_late_exits_find(&cursor->scan.late, cursor->stream_id, cursor->open_indexes,
                              part->open_count, add_late_exit, cursor);
}

static void cache_sums(aggregate_cursor *cursor)
{
    const sj_scan_session *session = &cursor->scan.session;
    const sj_block_sums *block_sums = &cursor->block_sums;
    if (cursor->scan.state->sums != NULL && block_sums->has_all_ends &&
        block_sums->place.first_ticks >= session->first_start &&
        block_sums->place.last_ticks <= session->last_start &&
        block_sums->frame_count <= CACHED_FRAMES_MAX &&
        block_sums->open_count <= CACHED_FRAMES_MAX) {
        sj_sums_cache_put(cursor->scan.state->sums, block_sums);
    }
}

static int aggregate_block(aggregate_cursor *cursor)
{
    const sj_block_sums *part = cursor->cached;
    int sum_result = SQLITE_OK;
    enter_stream(cursor);
    if (part == NULL) {
        part = &cursor->block_sums;
        sum_result = sj_block_summer_add(&cursor->summer, &cursor->scan, cursor->carried,
                                         cursor->carried_count, &cursor->block_sums);
        if (sum_result == SQLITE_NOMEM) {
            return sum_result;
        }
    }
    int result = reserve_memory(cursor, part);
    if (result != SQLITE_OK) {
        return result;
    }
    end_missing(cursor, part);
    add_functions(cursor, part);
    result = carry_open(cursor, part);
    if (cursor->cached == NULL && sum_result == SQLITE_OK) {
        cache_sums(cursor);
    }
    release_cached(cursor);
    return result;
}

static void make_filter(const aggregate_cursor *cursor, int given, sj_scan_filter *filter)
{
    *filter = sj_scan_everything;
    filter->first_session = filter->last_session = cursor->arguments[0];
    if ((given & 2) != 0) {
        filter->first_start_ns = cursor->arguments[1];
    }
    if ((given & 4) != 0) {
        filter->last_start_ns =
            cursor->arguments[2] == INT64_MIN ? INT64_MIN : cursor->arguments[2] - 1;
    }
    if ((given & 8) != 0) {
        filter->first_stream = filter->last_stream = cursor->arguments[3];
    }
}

static void skip_empty(aggregate_cursor *cursor)
{
    while (cursor->at < cursor->sum_count && cursor->sums[cursor->at].sum.calls == 0 &&
           cursor->sums[cursor->at].sum.open == 0) {
        ++cursor->at;
    }
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    for (int i = 0, next = 0; i < ARGUMENTS && next < argc; ++i) {
        if ((given >> i & 1) != 0) {
            cursor->arguments[i] = sqlite3_value_int64(argv[next++]);
        }
    }
    int result = SQLITE_OK;
    if (!cursor->scan_open) {
        result = sj_block_scan_open(&cursor->scan, sj_table_of(base)->state);
        cursor->scan_open = true;
        cursor->scan.is_known = cursor->scan.state->sums != NULL ? find_cached : NULL;
        cursor->scan.known_context = cursor;
    }
    if (result != SQLITE_OK) {
        return result;
    }
    for (size_t i = 0; i < cursor->sum_count; ++i) {
        cursor->sums[i] = (session_sum){0};
    }
    cursor->carried_count = 0;
    cursor->stream_id = INT64_MIN;
    sj_scan_filter filter;
    make_filter(cursor, given, &filter);
    result = sj_block_scan_start(&cursor->scan, &filter, SJ_SCAN_SUMS);
    while (result == SQLITE_OK && (result = sj_block_scan_next(&cursor->scan)) == SQLITE_ROW) {
        result = aggregate_block(cursor);
    }
    cursor->at = 0;
    skip_empty(cursor);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    ++cursor->at;
    skip_empty(cursor);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const aggregate_cursor *cursor = (const aggregate_cursor *)base;
    return cursor->at >= cursor->sum_count;
}

static void give_ticks(sqlite3_context *context, const aggregate_cursor *cursor, uint64_t ticks)
{
    sqlite3_result_int64(context, sj_ticks_to_ns(&cursor->scan.session.scale, ticks));
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const aggregate_cursor *cursor = (const aggregate_cursor *)base;
    const sj_function_sum *sum = &cursor->sums[cursor->at].sum;
    switch (column) {
    case COLUMN_FUNCTION_ID: {
        const int64_t id = sj_scan_function_id(&cursor->scan.session, (uint32_t)cursor->at);
        if (id != 0) {
            sqlite3_result_int64(context, id);
        }
        break;
    }
    case COLUMN_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)sum->calls);
        break;
    case COLUMN_TOTAL_NS:
        give_ticks(context, cursor, sum->duration_ticks - sum->nested_ticks);
        break;
    case COLUMN_SELF_NS:
        give_ticks(context, cursor, sum->self_ticks);
        break;
    case COLUMN_DURATION_NS:
        give_ticks(context, cursor, sum->duration_ticks);
        break;
    case COLUMN_MIN_NS:
    case COLUMN_MAX_NS:
        if (sum->calls != 0) {
            give_ticks(context, cursor, column == COLUMN_MIN_NS ? sum->min_ticks : sum->max_ticks);
        }
        break;
    case COLUMN_OPEN:
        sqlite3_result_int64(context, (sqlite3_int64)sum->open);
        break;
    default:
        sqlite3_result_int64(context, cursor->arguments[column - COLUMN_SESSION_ID]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const aggregate_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module aggregate_module = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_call_aggregate(sj_query_state *state)
{
    static const sj_table_kind kind = {
        .name = "call_aggregate",
        .declaration =
            "CREATE TABLE call_aggregate(function_id INTEGER, calls INTEGER, total_ns INTEGER, "
            "self_ns INTEGER, duration_ns INTEGER, min_ns INTEGER, max_ns INTEGER, open INTEGER, "
            "session_id HIDDEN, from_ns HIDDEN, to_ns HIDDEN, stream_id HIDDEN)",
        .first_argument = COLUMN_SESSION_ID,
        .argument_count = ARGUMENTS,
        .required_count = 1,
        .rows = 500,
        .cost = 1e5};
    return sj_table_register(state, &kind, &aggregate_module);
}
