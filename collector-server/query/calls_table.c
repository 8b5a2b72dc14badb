/* The virtual table `calls`: a row for every call, decoded block by block as rows are read.
 *
 * Design notes. The block scan (block_scan.h) skips whole blocks; this cursor skips rows in a
 * block. Rows come in the order of call ids. For GROUP BY and ORDER BY function_id the cursor sorts
 * by function (function_groups.h), because SQLite's sorter costs about ten times as much. The end
 * of a call may be in a later block; only queries that use ends search for it there. Joins by call
 * id (to parents, callees, values) read single calls, so the most recently used blocks stay
 * decoded. */
#include "schema/queries/query/calls_table.h"
#include "collector-server/query/calls_longest.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/calls_row.h"
#include "collector-server/query/function_groups.h"
#include "collector-server/query/table_function.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>
#include <string.h>

/* Number of decoded blocks that are kept for queries of single calls. The callers of a call may be
 * in other blocks. A decoded block takes about 5 MB. */
enum { HELD_BLOCKS = 4 };

typedef struct held_block {
    sj_block_scan scan;
    bool open;  /* `scan` is open */
    bool holds; /* `scan` has the rows of a block, made with `want` and `resolve` */
    bool resolve;
    unsigned want;
    uint64_t last_use;
} held_block;

typedef struct calls_cursor {
    sqlite3_vtab_cursor base;
    sj_calls_row at; /* its scan is the scan of one of `held` */
    held_block held[HELD_BLOCKS];
    uint64_t uses; /* counts uses of `held`, for last_use */
    bool in_block; /* all further rows are in the current block, before `row_count` */
    bool end;
    bool grouped;    /* rows come from `groups` */
    bool longest;    /* rows come from `long_rows` */
    bool check_rows; /* rows of a block must be tested against the filter */
    bool need_rows;  /* the query needs rows, not only their number */
    bool pass_short; /* a minimum duration is wanted */
    bool distinct;   /* one row per function of a block is enough */
    int64_t offset;  /* number of matching rows to skip */
    bool resolve;    /* ends in later blocks are needed */
    unsigned used;   /* used columns, one bit each */
    size_t row;      /* current row of the block */
    size_t row_count;
    sj_function_groups groups;
    sj_calls_longest long_rows;
    sj_scan_filter query_filter; /* filter of the query, for `long_rows` */
    uint32_t *picked;            /* matching rows of the block */
    uint32_t *entries;           /* parallel to `picked`: dictionary entries of the functions */
    int64_t *values;             /* columns of the picked rows; each column is contiguous */
    bool *seen;                  /* by dictionary entry: the function was picked */
    sj_calls_set set;
    size_t picked_capacity, value_capacity, seen_capacity;
} calls_cursor;

/* Columns that need times, ends in later blocks, rows, and tail calls. */
enum {
    TIME_COLUMNS = 1 << SJ_CALLS_START_NS | 1 << SJ_CALLS_END_NS | 1 << SJ_CALLS_DURATION_NS |
                   1 << SJ_CALLS_SELF_NS | 1 << SJ_CALLS_PHYSICAL_DURATION_NS,
    LATE_COLUMNS = 1 << SJ_CALLS_END_NS | 1 << SJ_CALLS_DURATION_NS | 1 << SJ_CALLS_SELF_NS |
                   1 << SJ_CALLS_ENDING | 1 << SJ_CALLS_FLAGS | 1 << SJ_CALLS_PHYSICAL_DURATION_NS,
    ROW_COLUMNS = TIME_COLUMNS | LATE_COLUMNS | 1 << SJ_CALLS_CALL_ID | 1 << SJ_CALLS_FUNCTION_ID |
                  1 << SJ_CALLS_PARENT_ID | 1 << SJ_CALLS_DEPTH | 1 << SJ_CALLS_CALLER_FUNCTION_ID |
                  1 << SJ_CALLS_TAIL_CALLER_ID | 1 << SJ_CALLS_PHYSICAL_PARENT_ID |
                  1 << SJ_CALLS_CPU_NS | 1 << SJ_CALLS_CPU_SELF_NS | 1 << SJ_CALLS_ALLOCATIONS |
                  1 << SJ_CALLS_ALLOCATED_BYTES | 1 << SJ_CALLS_FREES | 1 << SJ_CALLS_FREED_BYTES |
                  1 << SJ_CALLS_NET_BYTES | 1 << SJ_CALLS_ALLOCATED_SELF_BYTES,
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
    cursor->at.costs.database = ((sj_table *)base)->state->database;
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
    sj_cost_lookup_deinit(&cursor->at.costs);
    free(cursor->picked);
    free(cursor->entries);
    free(cursor->values);
    free(cursor->seen);
    free(cursor->set.numbers);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static bool caller_matches(calls_cursor *cursor, size_t row, const sj_scan_filter *filter)
{
    if (filter->by_parent && sj_calls_parent(&cursor->at, row) != filter->parent_id) {
        return false;
    }
    if (!filter->by_caller) {
        return true;
    }
    const int64_t caller = sj_calls_caller(&cursor->at, row);
    return caller != SJ_CALLS_NO_VALUE && caller == filter->caller_function_id;
}

static bool row_matches(calls_cursor *cursor, size_t row)
{
    const sj_scan_filter *filter = &cursor->at.scan->filter;
    const sj_block_rows *rows = &cursor->at.scan->rows;
    if (filter->by_function && !cursor->at.scan->function_matches[rows->symbols[row]]) {
        return false;
    }
    const int64_t id = sj_calls_id(&cursor->at, rows->indexes[row]);
    if (id < filter->first_call || id > filter->last_call ||
        rows->depths[row] < filter->min_depth || rows->depths[row] > filter->max_depth ||
        !caller_matches(cursor, row, filter)) {
        return false;
    }
    if (!cursor->at.scan->rows_have_times) {
        return true;
    }
    const sj_scan_session *session = &cursor->at.scan->session;
    if (rows->starts[row] < session->first_start || rows->starts[row] > session->last_start) {
        return false;
    }
    if (!filter->ended) {
        return true;
    }
    return sj_row_ended(rows, row) && sj_calls_end_ns(&cursor->at, row) >= filter->first_end_ns &&
           sj_calls_end_ns(&cursor->at, row) - sj_calls_start_ns(&cursor->at, row) >=
               filter->min_duration_ns;
}

/* Moves to the next block and makes its rows if needed. Skips a whole block for OFFSET if all its
 * rows match. Sets `end` after the last block. */
static int next_block(calls_cursor *cursor)
{
    for (;;) {
        int result = sj_block_scan_next(cursor->at.scan);
        if (result != SQLITE_ROW) {
            cursor->end = true;
            return result == SQLITE_DONE ? SQLITE_OK : result;
        }
        cursor->row = 0;
        cursor->row_count = cursor->at.scan->block.header.call_count;
        cursor->at.frame_depth = UINT32_MAX;
        if (!cursor->check_rows && cursor->offset > 0 &&
            (uint64_t)cursor->offset >= cursor->row_count) {
            cursor->offset -= (int64_t)cursor->row_count;
            continue;
        }
        if (cursor->need_rows) {
            result = sj_block_scan_rows(cursor->at.scan, cursor->resolve);
            if (result == SJ_SCAN_CONTRADICTION) {
                continue;
            }
            if (result != SQLITE_OK) {
                return result;
            }
        }
        return SQLITE_OK;
    }
}

/* Skips rows below the minimum duration. A tight loop, because these are most rows. */
static void pass_short_rows(calls_cursor *cursor)
{
    const sj_block_rows *rows = &cursor->at.scan->rows;
    const uint64_t least = cursor->at.scan->session.min_duration;
    size_t row = cursor->row;
    while (row < cursor->row_count && rows->ends[row] - rows->starts[row] < least) {
        ++row;
    }
    cursor->row = row;
}

/* Moves to the next matching row, from the current row on. Sets `end` if there is none. */
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
                if (cursor->offset <= 0) {
                    return SQLITE_OK;
                }
                --cursor->offset;
            }
            ++cursor->row;
        }
        if (cursor->in_block) {
            cursor->end = true; /* the block stays decoded */
            return SQLITE_OK;
        }
        const int result = next_block(cursor);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    return SQLITE_OK;
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
    const size_t functions = cursor->at.scan->block.function_count;
    if (sj_array_reserve(&cursor->seen, &cursor->seen_capacity, 0, functions,
                         sizeof(*cursor->seen)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    if (functions != 0) {
        memset(cursor->seen, 0, functions * sizeof(*cursor->seen));
    }
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
    const sj_block_rows *rows = &cursor->at.scan->rows;
    for (size_t i = 0; i < count; ++i) {
        const size_t row = cursor->picked[i];
        values[i] = sj_row_ended(rows, row)
                        ? sj_calls_end_ns(&cursor->at, row) - sj_calls_start_ns(&cursor->at, row)
                        : SJ_CALLS_NO_VALUE;
    }
}

static void fill_column(calls_cursor *cursor, int column, size_t count, int64_t *values)
{
    if (column == SJ_CALLS_DURATION_NS) {
        fill_durations(cursor, count, values);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        values[i] = sj_calls_value(&cursor->at, cursor->picked[i], column);
    }
}

/* Picks the matching rows of the block and returns their number. With `distinct`, picks one row per
 * function. Every function of a block's dictionary was called in the block: without conditions on
 * rows, the dictionary is enough. */
static size_t pick_rows(calls_cursor *cursor)
{
    const sj_block_scan *scan = cursor->at.scan;
    size_t count = 0;
    if (cursor->distinct && !cursor->check_rows) {
        for (; count < scan->block.function_count; ++count) {
            cursor->entries[count] = (uint32_t)count;
        }
        return count;
    }
    for (; cursor->row < cursor->row_count; ++cursor->row) {
        if (cursor->pass_short) {
            pass_short_rows(cursor);
        }
        const size_t row = cursor->row;
        if (row == cursor->row_count) {
            break;
        }
        const uint32_t entry = scan->rows.symbols[row];
        if (!(cursor->distinct && cursor->seen[entry]) &&
            (!cursor->check_rows || row_matches(cursor, row))) {
            cursor->seen[entry] = true;
            cursor->picked[count] = (uint32_t)row;
            cursor->entries[count++] = entry;
        }
    }
    return count;
}

/* Writes the matching rows of the next block to `batch`, for function_groups.c and
 * calls_longest.c. */
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
    const size_t count = pick_rows(cursor);
    /* Functions of unknown modules form one group, with a NULL function_id. */
    for (size_t i = 0; i < cursor->at.scan->block.function_count; ++i) {
        cursor->at.scan->function_ids[i] = cursor->at.scan->function_ids[i] != 0
                                               ? cursor->at.scan->function_ids[i]
                                               : SJ_CALLS_NO_VALUE;
    }
    *batch = (sj_group_batch){.row_count = count,
                              .entries = cursor->entries,
                              .function_ids = cursor->at.scan->function_ids,
                              .function_count = cursor->at.scan->block.function_count};
    for (size_t i = 0; i < cursor->groups.column_count; ++i) {
        int64_t *values = cursor->values + i * cursor->row_count;
        fill_column(cursor, cursor->groups.columns[i], count, values);
        batch->columns[i] = values;
    }
    return SQLITE_ROW;
}

/* Chooses the columns of batches: the used columns, without function_id, which a batch stores
 * separately. */
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

/* Returns which parts of blocks the used columns and the filter need; 0: only the number of
 * rows. */
static unsigned needed_parts(unsigned used, const sj_scan_filter *filter)
{
    const bool times = (used & TIME_COLUMNS) != 0 || filter->ended ||
                       filter->first_start_ns != INT64_MIN || filter->last_start_ns != INT64_MAX;
    const bool rows = times || (used & ROW_COLUMNS) != 0 || filter->by_function ||
                      filter->first_call != INT64_MIN || filter->last_call != INT64_MAX ||
                      filter->min_depth != INT64_MIN || filter->max_depth != INT64_MAX ||
                      filter->by_parent || filter->by_caller;
    return times ? SJ_SCAN_TIMES : rows ? SJ_SCAN_STRUCTURE : 0;
}

/* True if the filter has only conditions on call ids and the parent. */
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

/* Finds the row of a call in a held block. Returns false if the block does not have the call. */
static bool find_in_block(const held_block *held, int64_t id, size_t *row)
{
    const sj_block_rows *rows = &held->scan.rows;
    const uint64_t index = (uint64_t)id & ((UINT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
    if (!held->holds || id < 0 || id >> SJ_CALL_INDEX_BITS != held->scan.stream_id) {
        return false;
    }
    const size_t low =
        SJ_BISECT(0, held->scan.block.header.call_count, i, rows->indexes[i] < index);
    *row = low;
    return low < held->scan.block.header.call_count && rows->indexes[low] == index;
}

/* Makes a call of a held block the current row and the only row. Returns false if no block has
 * it. */
static bool find_held(calls_cursor *cursor, int64_t id, unsigned want, bool resolve)
{
    for (size_t i = 0; i < HELD_BLOCKS; ++i) {
        held_block *held = &cursor->held[i];
        size_t row;
        if (held->want == want && held->resolve == resolve && find_in_block(held, id, &row)) {
            if (cursor->at.scan != &held->scan) {
                cursor->at.frame_depth = UINT32_MAX;
            }
            cursor->at.scan = &held->scan;
            cursor->row = row;
            cursor->row_count = row + 1;
            held->last_use = ++cursor->uses;
            return true;
        }
    }
    return false;
}

/* Chooses the held block whose scan is used next: the least recently used one for a single call,
 * else the first. */
static int choose_held_block(calls_cursor *cursor, bool single, held_block **chosen)
{
    held_block *place = &cursor->held[0];
    for (size_t i = 1; single && i < HELD_BLOCKS; ++i) {
        place = cursor->held[i].last_use < place->last_use ? &cursor->held[i] : place;
    }
    place->holds = false;
    place->last_use = ++cursor->uses;
    cursor->at.scan = &place->scan;
    cursor->at.frame_depth = UINT32_MAX;
    *chosen = place;
    int result = SQLITE_OK;
    if (!place->open) {
        place->open = true;
        result = sj_block_scan_open(&place->scan, sj_table_of(&cursor->base)->state);
    }
    place->scan.takes_outlines = (cursor->used & TAIL_COLUMNS) == 0;
    return result;
}

/* Makes the call with this id the only row. Sets `end` if the call does not exist. */
static int seek(calls_cursor *cursor, int64_t id, unsigned want, bool resolve)
{
    cursor->in_block = true;
    if (find_held(cursor, id, want, resolve)) {
        return SQLITE_OK;
    }
    sj_scan_filter filter = sj_scan_everything;
    filter.first_call = filter.last_call = id;
    held_block *place;
    int result = choose_held_block(cursor, true, &place);
    if (result == SQLITE_OK) {
        result = sj_block_scan_start(cursor->at.scan, &filter, want);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    const bool query_filter = cursor->resolve;
    cursor->in_block = cursor->pass_short = false;
    cursor->resolve = resolve;
    cursor->need_rows = want != 0;
    cursor->check_rows = true;
    result = find_row(cursor);
    cursor->resolve = query_filter;
    cursor->in_block = true;
    cursor->row_count = cursor->row + 1;
    place->holds = result == SQLITE_OK && !cursor->end;
    place->want = want;
    place->resolve = resolve;
    return result;
}

/* True if the row that `seek` found matches the whole filter. `seek` filters by the id only,
 * because its block stays decoded for later queries of other calls. */
static bool sought_matches(calls_cursor *cursor, const sj_scan_filter *filter)
{
    const size_t row = cursor->row;
    const sj_block_rows *rows = &cursor->at.scan->rows;
    const int64_t session = cursor->at.scan->session.session_id;
    const int64_t function = sj_calls_value(&cursor->at, row, SJ_CALLS_FUNCTION_ID);
    if (session < filter->first_session || session > filter->last_session ||
        cursor->at.scan->stream_id < filter->first_stream ||
        cursor->at.scan->stream_id > filter->last_stream || rows->depths[row] < filter->min_depth ||
        rows->depths[row] > filter->max_depth ||
        (filter->by_thread && cursor->at.scan->thread_id != filter->thread_id) ||
        !sj_scan_filter_matches(filter, function == SJ_CALLS_NO_VALUE ? 0 : function) ||
        !caller_matches(cursor, row, filter)) {
        return false;
    }
    if (!cursor->at.scan->rows_have_times) {
        return true;
    }
    const int64_t start = sj_calls_start_ns(&cursor->at, row);
    return start >= filter->first_start_ns && start <= filter->last_start_ns &&
           (!filter->ended ||
            (sj_row_ended(rows, row) && sj_calls_end_ns(&cursor->at, row) >= filter->first_end_ns &&
             sj_calls_end_ns(&cursor->at, row) - start >= filter->min_duration_ns));
}

/* Makes the call whose id the filter requires the only row, if it matches the whole filter. */
static int seek_one(calls_cursor *cursor, const sj_scan_filter *filter, unsigned want)
{
    const int result =
        seek(cursor, filter->first_call, want != 0 ? want : SJ_SCAN_STRUCTURE, cursor->resolve);
    if (result == SQLITE_OK && !cursor->end && !sought_matches(cursor, filter)) {
        cursor->end = true;
    }
    return result;
}

/* Finds the caller that the filter requires. If the current rows have all its callees, limits the
 * rows to them and sets `*all_in_block`. Else lowers the filter's last start to the caller's
 * end. */
static int narrow_to_callees(calls_cursor *cursor, sj_scan_filter *filter, bool *all_in_block)
{
    *all_in_block = false;
    const int result = seek(cursor, filter->parent_id, SJ_SCAN_TIMES, true);
    const bool found = result == SQLITE_OK && !cursor->end;
    cursor->in_block = cursor->end = false;
    if (!found) {
        return result;
    }
    const sj_block_rows *rows = &cursor->at.scan->rows;
    const size_t caller = cursor->row;
    size_t after = caller + 1;
    while (after < cursor->at.scan->block.header.call_count &&
           rows->depths[after] > rows->depths[caller]) {
        ++after;
    }
    if (after < cursor->at.scan->block.header.call_count && is_by_id(filter)) {
        *all_in_block = true;
        cursor->at.scan->filter = *filter;
        cursor->row = caller + 1;
        cursor->row_count = after;
    } else if (sj_row_ended(rows, caller) &&
               sj_calls_end_ns(&cursor->at, caller) < filter->last_start_ns) {
        filter->last_start_ns = sj_calls_end_ns(&cursor->at, caller);
    }
    return SQLITE_OK;
}

/* Returns which parts of blocks the query needs, and sets check_rows, need_rows and pass_short. */
static unsigned choose_want(calls_cursor *cursor, const sj_scan_filter *filter, bool grouped)
{
    unsigned want = needed_parts(cursor->used, filter);
    if (grouped && want == 0) {
        want = SJ_SCAN_STRUCTURE;
    }
    if (cursor->resolve) {
        want = SJ_SCAN_TIMES; /* ends in later blocks are written to the arrays of times */
    }
    cursor->check_rows = filter->by_function || filter->ended || filter->first_call != INT64_MIN ||
                         filter->last_call != INT64_MAX || filter->min_depth != INT64_MIN ||
                         filter->max_depth != INT64_MAX || filter->first_start_ns != INT64_MIN ||
                         filter->last_start_ns != INT64_MAX || filter->by_parent ||
                         filter->by_caller;
    cursor->need_rows = want != 0 && !(cursor->distinct && !cursor->check_rows);
    cursor->pass_short = want == SJ_SCAN_TIMES && filter->ended && filter->min_duration_ns > 1;
    return want;
}

static int start_scan(calls_cursor *cursor, const sj_scan_filter *filter, bool grouped)
{
    held_block *place;
    cursor->row = cursor->row_count = 0;
    const unsigned want = choose_want(cursor, filter, grouped);
    int result = choose_held_block(cursor, false, &place);
    if (result == SQLITE_OK) {
        result = sj_block_scan_start(cursor->at.scan, filter, want);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    cursor->grouped = grouped;
    return grouped ? start_groups(cursor) : find_row(cursor);
}

/* Callback of calls_longest.c: starts a scan for calls that last at least `min_ns`. */
static int begin_pass(void *context, int64_t min_ns)
{
    calls_cursor *cursor = context;
    sj_scan_filter filter = cursor->query_filter;
    held_block *place;
    filter.ended = true;
    filter.min_duration_ns = min_ns > filter.min_duration_ns ? min_ns : filter.min_duration_ns;
    cursor->resolve = true;
    cursor->end = false;
    const unsigned want = choose_want(cursor, &filter, false);
    const int result = choose_held_block(cursor, false, &place);
    return result == SQLITE_OK ? sj_block_scan_start(cursor->at.scan, &filter, want) : result;
}

static int start_longest(calls_cursor *cursor, const sj_scan_filter *filter, const char *plan,
                         int argc, sqlite3_value **argv)
{
    cursor->longest = true;
    cursor->query_filter = *filter;
    cursor->used |= 1 << SJ_CALLS_CALL_ID | 1 << SJ_CALLS_DURATION_NS;
    choose_columns(cursor);
    const sj_longest_source source = {.begin = begin_pass,
                                      .give = give_batch,
                                      .context = cursor,
                                      .database = sj_table_of(&cursor->base)->state->database,
                                      .filter = &cursor->query_filter,
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
    cursor->offset = 0;
    sj_scan_filter filter;
    const int read = sj_calls_read_set(plan, argc, argv, &cursor->set);
    if (read != SQLITE_OK) {
        return read;
    }
    if (!sj_calls_filter(plan, argc, argv, &cursor->set, &filter)) {
        cursor->end = true;
        return SQLITE_OK;
    }
    const int64_t offset = sj_calls_offset(plan, argc, argv);
    cursor->distinct = ((unsigned)plan_number & SJ_CALLS_DISTINCT) != 0;
    cursor->used = (unsigned)plan_number & ((1u << SJ_CALLS_COLUMN_COUNT) - 1);
    cursor->resolve = (cursor->used & LATE_COLUMNS) != 0 || filter.ended;
    const bool grouped = ((unsigned)plan_number & SJ_CALLS_GROUPED) != 0;
    const unsigned want = choose_want(cursor, &filter, grouped);
    if (!grouped && filter.first_call == filter.last_call) {
        const int result = seek_one(cursor, &filter, want);
        cursor->end = cursor->end || offset > 0;
        return result;
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
    cursor->offset = offset;
    if (in_block) {
        cursor->in_block = cursor->check_rows = cursor->need_rows = true;
        return find_row(cursor);
    }
    return start_scan(cursor, &filter, grouped);
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    calls_cursor *cursor = (calls_cursor *)base;
    sqlite3_value *given = NULL;
    const int64_t value =
        cursor->longest   ? sj_calls_longest_value(&cursor->long_rows, column, &given)
        : cursor->grouped ? sj_function_groups_value(&cursor->groups,
                                                     column == SJ_CALLS_FUNCTION_ID ? -1 : column)
                          : sj_calls_value(&cursor->at, cursor->row, column);
    if (given != NULL) {
        sqlite3_result_value(context, given);
    } else {
        sj_calls_give(context, column, value);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    calls_cursor *cursor = (calls_cursor *)base;
    if (cursor->grouped || cursor->longest || !cursor->need_rows) {
        *rowid = 0; /* SQLite does not use the row id with these plans */
        return SQLITE_OK;
    }
    *rowid = sj_calls_value(&cursor->at, cursor->row, SJ_CALLS_CALL_ID);
    return SQLITE_OK;
}

static const sqlite3_module calls_module = SJ_TABLE_METHODS(best_index);

int sj_register_calls(sj_query_state *state)
{
    static const sj_table_kind kind = {.name = "calls", .declaration = sj_calls_table_columns_sql};
    return sj_table_register(state, &kind, &calls_module);
}
