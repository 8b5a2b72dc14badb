/* The virtual table `calls`: every call, one row each, decoded block by block as it is read.
 *
 * Design notes. The walk over blocks (block_scan.c) leaves whole blocks out; this cursor passes
 * over rows within a block. Rows come by call id. For GROUP BY and ORDER BY function_id the cursor
 * sorts by function (function_groups.c): SQLite's sorter costs about ten times as much. A call that
 * ended in a later block than it began is one row; only queries that look at ends pay for that.
 * Joins by call id (to parents, callees, values) ask for one call at a time: the blocks of the last
 * ones stay decoded. */
#include "collector-server/query/calls_longest.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/cost_lookup.h"
#include "collector-server/query/function_groups.h"
#include "collector-server/query/table_function.h"

#include <stdlib.h>
#include <string.h>

#define NO_VALUE INT64_MIN

/* Blocks that stay decoded for single calls: that of the row at hand, and those of its callers that
 * run for long. A block takes about 5 MB. */
enum { HELD_BLOCKS = 4 };

typedef struct held_block {
    sj_block_scan scan;
    bool open;
    bool holds; /* rows of a block, made with `want` and `resolve` */
    bool resolve;
    unsigned want;
    uint64_t last_use;
} held_block;

typedef struct calls_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan *scan; /* that of one of `held`; a walk uses the first */
    held_block held[HELD_BLOCKS];
    uint64_t uses;
    bool in_block; /* what is left lies in this block: rows before `row_count` */
    bool end;
    bool grouped;
    bool longest;
    bool check_rows; /* rows of a block may not match */
    bool need_rows;
    bool pass_short; /* a least duration is asked for */
    bool resolve;
    unsigned used; /* columns, one bit each */
    size_t row;
    size_t row_count;
    /* the calls open at the start of the block that callers were asked of last */
    uint32_t frame_depth; /* UINT32_MAX: none yet */
    sj_stack_frame frame;
    bool frame_known;
    sj_function_groups groups;
    sj_calls_longest long_rows;
    sj_scan_filter asked; /* by the question that `long_rows` answers */
    uint32_t *picked;     /* rows of the block that match, and their dictionary entries */
    uint32_t *entries;
    int64_t *values; /* of the columns, one after the other */
    sj_cost_lookup costs;
    size_t picked_capacity, value_capacity;
} calls_cursor;

enum {
    TIME_COLUMNS = 1 << SJ_CALLS_START_NS | 1 << SJ_CALLS_END_NS | 1 << SJ_CALLS_DURATION_NS |
                   1 << SJ_CALLS_SELF_NS | 1 << SJ_CALLS_PHYSICAL_DURATION_NS,
    LATE_COLUMNS = 1 << SJ_CALLS_END_NS | 1 << SJ_CALLS_DURATION_NS | 1 << SJ_CALLS_SELF_NS |
                   1 << SJ_CALLS_ENDING | 1 << SJ_CALLS_FLAGS | 1 << SJ_CALLS_PHYSICAL_DURATION_NS,
    ROW_COLUMNS = TIME_COLUMNS | LATE_COLUMNS | 1 << SJ_CALLS_CALL_ID | 1 << SJ_CALLS_FUNCTION_ID |
                  1 << SJ_CALLS_PARENT_ID | 1 << SJ_CALLS_DEPTH | 1 << SJ_CALLS_CALLER_FUNCTION_ID |
                  1 << SJ_CALLS_TAIL_CALLER_ID | 1 << SJ_CALLS_PHYSICAL_PARENT_ID |
                  1 << SJ_CALLS_CPU_NS | 1 << SJ_CALLS_CPU_SELF_NS,
    TAIL_COLUMNS = 1 << SJ_CALLS_TAIL_CALLER_ID | 1 << SJ_CALLS_PHYSICAL_PARENT_ID |
                   1 << SJ_CALLS_PHYSICAL_DURATION_NS
};

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    return sj_calls_plan(((sj_table *)base)->state, info);
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    calls_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    cursor->costs.database = ((sj_table *)base)->state->database;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    calls_cursor *cursor = (calls_cursor *)base;
    for (size_t i = 0; i < HELD_BLOCKS; ++i) {
        if (cursor->held[i].open) {
            sj_block_scan_close(&cursor->held[i].scan);
        }
    }
    sj_function_groups_deinit(&cursor->groups);
    sj_calls_longest_deinit(&cursor->long_rows);
    sj_cost_lookup_deinit(&cursor->costs);
    free(cursor->picked);
    free(cursor->entries);
    free(cursor->values);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int64_t call_id(const calls_cursor *cursor, uint64_t index)
{
    return (int64_t)sj_call_id_of((uint64_t)cursor->scan->stream_id, index);
}

static int64_t start_ns(const calls_cursor *cursor, size_t row)
{
    return sj_scan_ns(&cursor->scan->session, cursor->scan->rows.starts[row]);
}

static int64_t end_ns(const calls_cursor *cursor, size_t row)
{
    return sj_scan_ns(&cursor->scan->session, cursor->scan->rows.ends[row]);
}

static int64_t parent_of(calls_cursor *cursor, size_t row);
static int64_t caller_of(calls_cursor *cursor, size_t row);

static bool caller_matches(calls_cursor *cursor, size_t row)
{
    const sj_scan_filter *filter = &cursor->scan->filter;
    if (filter->by_parent && parent_of(cursor, row) != filter->parent_id) {
        return false;
    }
    if (!filter->by_caller) {
        return true;
    }
    const int64_t caller = caller_of(cursor, row);
    return caller != NO_VALUE && caller == filter->caller_function_id;
}

static bool row_matches(calls_cursor *cursor, size_t row)
{
    const sj_scan_filter *filter = &cursor->scan->filter;
    const sj_block_rows *rows = &cursor->scan->rows;
    if (filter->by_function && !cursor->scan->function_matches[rows->symbols[row]]) {
        return false;
    }
    const int64_t id = call_id(cursor, rows->indexes[row]);
    if (id < filter->first_call || id > filter->last_call ||
        rows->depths[row] < filter->min_depth || rows->depths[row] > filter->max_depth ||
        !caller_matches(cursor, row)) {
        return false;
    }
    if (!cursor->scan->rows_have_times) {
        return true;
    }
    const sj_scan_session *session = &cursor->scan->session;
    if (rows->starts[row] < session->first_start || rows->starts[row] > session->last_start) {
        return false;
    }
    if (!filter->ended) {
        return true;
    }
    return sj_row_ended(rows, row) && end_ns(cursor, row) >= filter->first_end_ns &&
           end_ns(cursor, row) - start_ns(cursor, row) >= filter->min_duration_ns;
}

static int next_block(calls_cursor *cursor)
{
    for (;;) {
        int result = sj_block_scan_next(cursor->scan);
        if (result != SQLITE_ROW) {
            cursor->end = true;
            return result == SQLITE_DONE ? SQLITE_OK : result;
        }
        cursor->row = 0;
        cursor->row_count = cursor->scan->block.header.call_count;
        cursor->frame_depth = UINT32_MAX;
        if (cursor->need_rows) {
            result = sj_block_scan_rows(cursor->scan, cursor->resolve);
            if (result == SQLITE_CORRUPT) {
                continue;
            }
            if (result != SQLITE_OK) {
                return result;
            }
        }
        return SQLITE_OK;
    }
}

/* Passes over rows that are too short: the reason of most, where a least duration is asked for. */
static void pass_short_rows(calls_cursor *cursor)
{
    const sj_block_rows *rows = &cursor->scan->rows;
    const uint64_t least = cursor->scan->session.min_duration;
    size_t row = cursor->row;
    while (row < cursor->row_count && rows->ends[row] - rows->starts[row] < least) {
        ++row;
    }
    cursor->row = row;
}

static int find_row(calls_cursor *cursor)
{
    while (!cursor->end) {
        while (cursor->row < cursor->row_count) {
            if (cursor->pass_short) {
                pass_short_rows(cursor);
                if (cursor->row == cursor->row_count) {
                    break;
                }
            }
            if (!cursor->check_rows || row_matches(cursor, cursor->row)) {
                return SQLITE_OK;
            }
            ++cursor->row;
        }
        if (cursor->in_block) {
            cursor->end = true; /* and the block stays */
            return SQLITE_OK;
        }
        const int result = next_block(cursor);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    return SQLITE_OK;
}

/* The key-frame's call that called `row`; false when there is none or it cannot be found. */
static bool find_caller_frame(calls_cursor *cursor, size_t row)
{
    const uint32_t depth = cursor->scan->rows.depths[row];
    if (depth == 0) {
        return false;
    }
    if (cursor->frame_depth != depth) {
        cursor->frame_depth = depth;
        cursor->frame_known =
            sj_block_scan_frame(cursor->scan, depth - 1, &cursor->frame) == SQLITE_OK;
    }
    return cursor->frame_known;
}

static int64_t parent_of(calls_cursor *cursor, size_t row)
{
    const uint32_t parent = cursor->scan->rows.parents[row];
    if (parent != SJ_ROW_NO_PARENT) {
        return call_id(cursor, cursor->scan->rows.indexes[parent]);
    }
    return find_caller_frame(cursor, row) ? call_id(cursor, cursor->frame.call_index) : NO_VALUE;
}

static int64_t caller_of(calls_cursor *cursor, size_t row)
{
    const uint32_t parent = cursor->scan->rows.parents[row];
    int64_t function = 0;
    if (parent != SJ_ROW_NO_PARENT) {
        function = cursor->scan->function_ids[cursor->scan->rows.symbols[parent]];
    } else if (find_caller_frame(cursor, row)) {
        function = sj_scan_function_id(&cursor->scan->session, cursor->frame.function);
    }
    return function != 0 ? function : NO_VALUE;
}

/* What a call that was open at the start of the block returns to. */
static int64_t below_frame(calls_cursor *cursor, uint32_t depth)
{
    sj_stack_frame frame;
    while (depth > 0 && sj_block_scan_frame(cursor->scan, --depth, &frame) == SQLITE_OK) {
        if (frame.left_ticks == 0) {
            return call_id(cursor, frame.call_index);
        }
    }
    return NO_VALUE;
}

static int64_t id_of(calls_cursor *cursor, sj_row_call call)
{
    sj_stack_frame frame;
    const uint32_t depth = call & SJ_CALL_DEPTH_MASK;
    if (call == SJ_NO_CALL) {
        return NO_VALUE;
    }
    if ((call & SJ_CALL_OF_FRAME) != 0) {
        return sj_block_scan_frame(cursor->scan, depth, &frame) == SQLITE_OK
                   ? call_id(cursor, frame.call_index)
                   : NO_VALUE;
    }
    return (call & SJ_CALL_BELOW_FRAME) != 0 ? below_frame(cursor, depth)
                                             : call_id(cursor, cursor->scan->rows.indexes[call]);
}

static int64_t tail_caller_of(calls_cursor *cursor, size_t row)
{
    const sj_block_rows *rows = &cursor->scan->rows;
    return rows->has_tail_calls ? id_of(cursor, rows->tail_callers[row]) : NO_VALUE;
}

static int64_t physical_parent_of(calls_cursor *cursor, size_t row)
{
    const sj_block_rows *rows = &cursor->scan->rows;
    return rows->has_tail_calls ? id_of(cursor, rows->frame_parents[row]) : parent_of(cursor, row);
}

/* From the start to the end of the call's stack frame. */
static int64_t physical_duration_ns(const calls_cursor *cursor, size_t row)
{
    const sj_block_rows *rows = &cursor->scan->rows;
    if (rows->lefts[row] != 0) {
        return sj_scan_ns(&cursor->scan->session, rows->lefts[row]) - start_ns(cursor, row);
    }
    return sj_row_ended(rows, row) ? end_ns(cursor, row) - start_ns(cursor, row) : NO_VALUE;
}

static int64_t column_value(calls_cursor *cursor, size_t row, int column)
{
    const sj_block_scan *scan = cursor->scan;
    const sj_block_rows *rows = &scan->rows;
    switch ((sj_calls_column)column) { /* no default: the compiler names a forgotten column */
    case SJ_CALLS_CALL_ID:
        return call_id(cursor, rows->indexes[row]);
    case SJ_CALLS_SESSION_ID:
        return scan->session.session_id;
    case SJ_CALLS_STREAM_ID:
        return scan->stream_id;
    case SJ_CALLS_THREAD_ID:
        return scan->thread_id;
    case SJ_CALLS_FUNCTION_ID: {
        const int64_t function = scan->function_ids[rows->symbols[row]];
        return function != 0 ? function : NO_VALUE;
    }
    case SJ_CALLS_PARENT_ID:
        return parent_of(cursor, row);
    case SJ_CALLS_DEPTH:
        return rows->depths[row];
    case SJ_CALLS_START_NS:
        return start_ns(cursor, row);
    case SJ_CALLS_END_NS:
        return sj_row_ended(rows, row) ? end_ns(cursor, row) : NO_VALUE;
    case SJ_CALLS_DURATION_NS:
        return sj_row_ended(rows, row) ? end_ns(cursor, row) - start_ns(cursor, row) : NO_VALUE;
    case SJ_CALLS_SELF_NS:
        return sj_row_ended(rows, row) ? sj_ticks_to_ns(&scan->session.scale, rows->selves[row])
                                       : NO_VALUE;
    case SJ_CALLS_ENDING:
        return rows->endings[row];
    case SJ_CALLS_FLAGS:
        return rows->flags[row];
    case SJ_CALLS_CALLER_FUNCTION_ID:
        return caller_of(cursor, row);
    case SJ_CALLS_TAIL_CALLER_ID:
        return tail_caller_of(cursor, row);
    case SJ_CALLS_PHYSICAL_PARENT_ID:
        return physical_parent_of(cursor, row);
    case SJ_CALLS_PHYSICAL_DURATION_NS:
        return physical_duration_ns(cursor, row);
    case SJ_CALLS_CPU_NS:
    case SJ_CALLS_CPU_SELF_NS:
        return sj_cost_lookup_find(&cursor->costs, scan, call_id(cursor, rows->indexes[row]),
                                   column == SJ_CALLS_CPU_SELF_NS);
    case SJ_CALLS_COLUMN_COUNT:
        break;
    }
    return NO_VALUE;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    calls_cursor *cursor = (calls_cursor *)base;
    if (cursor->grouped) {
        return sj_function_groups_next(&cursor->groups);
    }
    if (cursor->longest) {
        return sj_calls_longest_next(&cursor->long_rows);
    }
    ++cursor->row;
    return find_row(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const calls_cursor *cursor = (const calls_cursor *)base;
    return cursor->grouped   ? cursor->groups.end
           : cursor->longest ? cursor->long_rows.end
                             : cursor->end;
}

static int reserve_batch(calls_cursor *cursor, size_t rows)
{
    const size_t value_count = rows * cursor->groups.column_count + 1;
    if (rows > cursor->picked_capacity) {
        uint32_t *picked = realloc(cursor->picked, rows * sizeof(*picked));
        cursor->picked = picked != NULL ? picked : cursor->picked;
        uint32_t *entries = realloc(cursor->entries, rows * sizeof(*entries));
        cursor->entries = entries != NULL ? entries : cursor->entries;
        if (picked == NULL || entries == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->picked_capacity = rows;
    }
    if (value_count > cursor->value_capacity) {
        int64_t *values = realloc(cursor->values, value_count * sizeof(*values));
        if (values == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->values = values;
        cursor->value_capacity = value_count;
    }
    return SQLITE_OK;
}

static void fill_durations(const calls_cursor *cursor, size_t count, int64_t *values)
{
    const sj_block_rows *rows = &cursor->scan->rows;
    for (size_t i = 0; i < count; ++i) {
        const size_t row = cursor->picked[i];
        values[i] =
            sj_row_ended(rows, row) ? end_ns(cursor, row) - start_ns(cursor, row) : NO_VALUE;
    }
}

static void fill_column(calls_cursor *cursor, int column, size_t count, int64_t *values)
{
    if (column == SJ_CALLS_DURATION_NS) {
        fill_durations(cursor, count, values);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        values[i] = column_value(cursor, cursor->picked[i], column);
    }
}

/* The rows of the next block that match, for function_groups.c. */
static int give_batch(void *context, sj_group_batch *batch)
{
    calls_cursor *cursor = context;
    int result = next_block(cursor);
    if (result != SQLITE_OK || cursor->end) {
        return result == SQLITE_OK ? SQLITE_DONE : result;
    }
    result = reserve_batch(cursor, cursor->row_count);
    if (result != SQLITE_OK) {
        return result;
    }
    size_t count = 0;
    for (; cursor->row < cursor->row_count; ++cursor->row) {
        if (cursor->pass_short) {
            pass_short_rows(cursor);
        }
        const size_t row = cursor->row;
        if (row < cursor->row_count && (!cursor->check_rows || row_matches(cursor, row))) {
            cursor->picked[count] = (uint32_t)row;
            cursor->entries[count++] = cursor->scan->rows.symbols[row];
        }
    }
    /* functions of no known module are one group, that of NULL */
    for (size_t i = 0; i < cursor->scan->block.function_count; ++i) {
        cursor->scan->function_ids[i] =
            cursor->scan->function_ids[i] != 0 ? cursor->scan->function_ids[i] : NO_VALUE;
    }
    *batch = (sj_group_batch){.row_count = count,
                              .entries = cursor->entries,
                              .function_ids = cursor->scan->function_ids,
                              .function_count = cursor->scan->block.function_count};
    for (size_t i = 0; i < cursor->groups.column_count; ++i) {
        int64_t *values = cursor->values + i * cursor->row_count;
        fill_column(cursor, cursor->groups.columns[i], count, values);
        batch->columns[i] = values;
    }
    return SQLITE_ROW;
}

/* The columns of batches: those that are used, but the function, which batches name once. */
static void choose_columns(calls_cursor *cursor)
{
    sj_function_groups *groups = &cursor->groups;
    groups->column_count = 0;
    for (int column = 0; column < SJ_CALLS_COLUMN_COUNT; ++column) {
        if ((cursor->used >> column & 1) != 0 && column != SJ_CALLS_FUNCTION_ID) {
            groups->columns[groups->column_count++] = column;
        }
    }
}

static int start_groups(calls_cursor *cursor)
{
    sj_function_groups *groups = &cursor->groups;
    choose_columns(cursor);
    groups->give = give_batch;
    groups->context = cursor;
    return sj_function_groups_start(groups);
}

static unsigned wanted(unsigned used, const sj_scan_filter *filter)
{
    const bool times = (used & TIME_COLUMNS) != 0 || filter->ended ||
                       filter->first_start_ns != INT64_MIN || filter->last_start_ns != INT64_MAX;
    const bool rows = times || (used & ROW_COLUMNS) != 0 || filter->by_function ||
                      filter->first_call != INT64_MIN || filter->last_call != INT64_MAX ||
                      filter->min_depth != INT64_MIN || filter->max_depth != INT64_MAX ||
                      filter->by_parent || filter->by_caller;
    return times ? SJ_SCAN_TIMES : rows ? SJ_SCAN_STRUCTURE : 0;
}

/* Whether nothing but call ids, and the caller, narrow the filter. */
static bool is_by_id(const sj_scan_filter *filter)
{
    const sj_scan_filter *all = &sj_scan_everything;
    return !filter->by_thread && !filter->by_function && !filter->ended && !filter->by_caller &&
           filter->first_session == all->first_session &&
           filter->last_session == all->last_session && filter->first_stream == all->first_stream &&
           filter->last_stream == all->last_stream &&
           filter->first_start_ns == all->first_start_ns &&
           filter->last_start_ns == all->last_start_ns && filter->min_depth == all->min_depth &&
           filter->max_depth == all->max_depth;
}

/* The row of a call in a held block; false: it is not there. */
static bool find_in_block(const held_block *held, int64_t id, size_t *row)
{
    const sj_block_rows *rows = &held->scan.rows;
    const uint64_t index = (uint64_t)id & ((UINT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
    if (!held->holds || id < 0 || id >> SJ_CALL_INDEX_BITS != held->scan.stream_id) {
        return false;
    }
    size_t low = 0;
    size_t high = held->scan.block.header.call_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rows->indexes[middle] < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *row = low;
    return low < held->scan.block.header.call_count && rows->indexes[low] == index;
}

/* Takes a call from a block that is held. */
static bool take_held(calls_cursor *cursor, int64_t id, unsigned want, bool resolve)
{
    for (size_t i = 0; i < HELD_BLOCKS; ++i) {
        held_block *held = &cursor->held[i];
        size_t row;
        if (held->want == want && held->resolve == resolve && find_in_block(held, id, &row)) {
            if (cursor->scan != &held->scan) {
                cursor->frame_depth = UINT32_MAX;
            }
            cursor->scan = &held->scan;
            cursor->row = row;
            cursor->row_count = row + 1;
            held->last_use = ++cursor->uses;
            return true;
        }
    }
    return false;
}

/* The place for the walk to come: for a single call that which was not used longest. */
static int choose_place(calls_cursor *cursor, bool single, held_block **chosen)
{
    held_block *place = &cursor->held[0];
    for (size_t i = 1; single && i < HELD_BLOCKS; ++i) {
        place = cursor->held[i].last_use < place->last_use ? &cursor->held[i] : place;
    }
    place->holds = false;
    place->last_use = ++cursor->uses;
    cursor->scan = &place->scan;
    cursor->frame_depth = UINT32_MAX;
    *chosen = place;
    int result = SQLITE_OK;
    if (!place->open) {
        place->open = true;
        result = sj_block_scan_open(&place->scan, sj_table_of(&cursor->base)->state);
    }
    place->scan.takes_outlines = (cursor->used & TAIL_COLUMNS) == 0;
    return result;
}

/* Makes a single call the only row; the cursor is at its end when there is no such call. */
static int seek(calls_cursor *cursor, int64_t id, unsigned want, bool resolve)
{
    cursor->in_block = true;
    if (take_held(cursor, id, want, resolve)) {
        return SQLITE_OK;
    }
    sj_scan_filter filter = sj_scan_everything;
    filter.first_call = filter.last_call = id;
    held_block *place;
    int result = choose_place(cursor, true, &place);
    if (result == SQLITE_OK) {
        result = sj_block_scan_start(cursor->scan, &filter, want);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    const bool asked = cursor->resolve;
    cursor->in_block = cursor->pass_short = false;
    cursor->resolve = resolve;
    cursor->need_rows = want != 0;
    cursor->check_rows = true;
    result = find_row(cursor);
    cursor->resolve = asked;
    cursor->in_block = true;
    cursor->row_count = cursor->row + 1;
    place->holds = result == SQLITE_OK && !cursor->end;
    place->want = want;
    place->resolve = resolve;
    return result;
}

/* Finds the caller that the filter names, and so where its callees lie: `*all_in_block` when the
 * rows at hand are all that can be; else the time of its end narrows the walk. */
static int narrow_to_callees(calls_cursor *cursor, sj_scan_filter *filter, bool *all_in_block)
{
    *all_in_block = false;
    const int result = seek(cursor, filter->parent_id, SJ_SCAN_TIMES, true);
    const bool found = result == SQLITE_OK && !cursor->end;
    cursor->in_block = cursor->end = false;
    if (!found) {
        return result;
    }
    const sj_block_rows *rows = &cursor->scan->rows;
    const size_t caller = cursor->row;
    size_t after = caller + 1;
    while (after < cursor->scan->block.header.call_count &&
           rows->depths[after] > rows->depths[caller]) {
        ++after;
    }
    if (after < cursor->scan->block.header.call_count && is_by_id(filter)) {
        *all_in_block = true;
        cursor->scan->filter = *filter;
        cursor->row = caller + 1;
        cursor->row_count = after;
    } else if (sj_row_ended(rows, caller) && end_ns(cursor, caller) < filter->last_start_ns) {
        filter->last_start_ns = end_ns(cursor, caller);
    }
    return SQLITE_OK;
}

/* What the columns used and the filter need of each block. */
static unsigned choose_want(calls_cursor *cursor, const sj_scan_filter *filter, bool grouped)
{
    unsigned want = wanted(cursor->used, filter);
    if (grouped && want == 0) {
        want = SJ_SCAN_STRUCTURE;
    }
    if (cursor->resolve) {
        want = SJ_SCAN_TIMES; /* late ends are put into the columns of times */
    }
    cursor->need_rows = want != 0;
    cursor->pass_short = want == SJ_SCAN_TIMES && filter->ended && filter->min_duration_ns > 1;
    cursor->check_rows = filter->by_function || filter->ended || filter->first_call != INT64_MIN ||
                         filter->last_call != INT64_MAX || filter->min_depth != INT64_MIN ||
                         filter->max_depth != INT64_MAX || filter->first_start_ns != INT64_MIN ||
                         filter->last_start_ns != INT64_MAX || filter->by_parent ||
                         filter->by_caller;
    return want;
}

static int start_walk(calls_cursor *cursor, const sj_scan_filter *filter, bool grouped)
{
    held_block *place;
    cursor->row = cursor->row_count = 0;
    const unsigned want = choose_want(cursor, filter, grouped);
    int result = choose_place(cursor, false, &place);
    if (result == SQLITE_OK) {
        result = sj_block_scan_start(cursor->scan, filter, want);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    cursor->grouped = grouped;
    return grouped ? start_groups(cursor) : find_row(cursor);
}

static int begin_pass(void *context, int64_t min_ns)
{
    calls_cursor *cursor = context;
    sj_scan_filter filter = cursor->asked;
    held_block *place;
    filter.ended = true;
    filter.min_duration_ns = min_ns > filter.min_duration_ns ? min_ns : filter.min_duration_ns;
    cursor->resolve = true;
    cursor->end = false;
    const unsigned want = choose_want(cursor, &filter, false);
    const int result = choose_place(cursor, false, &place);
    return result == SQLITE_OK ? sj_block_scan_start(cursor->scan, &filter, want) : result;
}

static int start_longest(calls_cursor *cursor, const sj_scan_filter *filter, const char *plan,
                         int argc, sqlite3_value **argv)
{
    cursor->longest = true;
    cursor->asked = *filter;
    cursor->used |= 1 << SJ_CALLS_CALL_ID | 1 << SJ_CALLS_DURATION_NS;
    choose_columns(cursor);
    const sj_longest_source source = {.begin = begin_pass,
                                      .give = give_batch,
                                      .context = cursor,
                                      .database = sj_table_of(&cursor->base)->state->database,
                                      .filter = &cursor->asked,
                                      .plan = plan,
                                      .arguments = argv,
                                      .argument_count = argc,
                                      .columns = cursor->groups.columns,
                                      .column_count = cursor->groups.column_count};
    return sj_calls_longest_start(&cursor->long_rows, &source);
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    calls_cursor *cursor = (calls_cursor *)base;
    cursor->end = cursor->grouped = cursor->in_block = cursor->longest = false;
    cursor->row = cursor->row_count = 0;
    sj_scan_filter filter;
    if (!sj_calls_filter(plan, argc, argv, &filter)) {
        cursor->end = true;
        return SQLITE_OK;
    }
    cursor->used = (unsigned)plan_number & ((1u << SJ_CALLS_COLUMN_COUNT) - 1);
    cursor->resolve = (cursor->used & LATE_COLUMNS) != 0 || filter.ended;
    const bool grouped = ((unsigned)plan_number & SJ_CALLS_GROUPED) != 0;
    const unsigned want = choose_want(cursor, &filter, grouped);
    if (!grouped && !filter.by_parent && filter.first_call == filter.last_call &&
        is_by_id(&filter)) {
        return seek(cursor, filter.first_call, want, cursor->resolve);
    }
    if (((unsigned)plan_number & SJ_CALLS_LONGEST) != 0) {
        return start_longest(cursor, &filter, plan, argc, argv);
    }
    bool in_block = false;
    if (filter.by_parent && !grouped) {
        const int result = narrow_to_callees(cursor, &filter, &in_block);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    if (in_block) {
        cursor->in_block = cursor->check_rows = cursor->need_rows = true;
        return find_row(cursor);
    }
    return start_walk(cursor, &filter, grouped);
}

static void give_ending(sqlite3_context *context, int64_t ending)
{
    static const char *const names[] = {"returned", "unwound", "open", "truncated"};
    if (ending >= 0 && ending < (int64_t)(sizeof(names) / sizeof(names[0]))) {
        sqlite3_result_text(context, names[ending], -1, SQLITE_STATIC);
    }
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    calls_cursor *cursor = (calls_cursor *)base;
    sqlite3_value *given = NULL;
    const int64_t value =
        cursor->longest   ? sj_calls_longest_value(&cursor->long_rows, column, &given)
        : cursor->grouped ? sj_function_groups_value(&cursor->groups,
                                                     column == SJ_CALLS_FUNCTION_ID ? -1 : column)
                          : column_value(cursor, cursor->row, column);
    if (given != NULL) {
        sqlite3_result_value(context, given);
    } else if (column == SJ_CALLS_ENDING) {
        give_ending(context, value);
    } else if (value != NO_VALUE) {
        sqlite3_result_int64(context, value);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    calls_cursor *cursor = (calls_cursor *)base;
    if (cursor->grouped || cursor->longest || !cursor->need_rows) {
        *rowid = 0; /* not asked for: these plans name no row */
        return SQLITE_OK;
    }
    *rowid = column_value(cursor, cursor->row, SJ_CALLS_CALL_ID);
    return SQLITE_OK;
}

static const sqlite3_module calls_module = SJ_TABLE_METHODS(best_index);

int sj_register_calls(sj_query_state *state)
{
    static const sj_table_kind kind = {
        .name = "calls",
        .declaration = "CREATE TABLE calls(call_id INTEGER, session_id INTEGER, stream_id INTEGER, "
                       "thread_id INTEGER, function_id INTEGER, parent_id INTEGER, depth INTEGER, "
                       "start_ns INTEGER, end_ns INTEGER, duration_ns INTEGER, self_ns INTEGER, "
                       "ending TEXT, flags INTEGER, caller_function_id INTEGER, "
                       "tail_caller_id INTEGER, physical_parent_id INTEGER, "
                       "physical_duration_ns INTEGER, cpu_ns INTEGER, cpu_self_ns INTEGER)"};
    return sj_table_register(state, &kind, &calls_module);
}
