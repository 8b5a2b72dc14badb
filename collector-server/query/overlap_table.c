/* Two table functions; a function is given as its function_id or its name.
 *
 * contains(session_id, outer, inner [, from_ns, to_ns]): the calls of one function that contain
 * calls of another one. intervals_intersect(session_id, a, b): pairs of calls of two functions that
 * ran at the same time, on any threads.
 *
 * Design notes. contains merges the calls of both functions by call id, which is the order of entry
 * in a stream. A stack holds the open outer calls. Calls after a stream's last outer call are
 * skipped. intervals_intersect merges the calls of both functions by entry time, and keeps the
 * running calls. A call that never ended runs for ever. */
#include "schema/queries/query/overlap_table.h"
#include "collector-server/query/table_function.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { REQUIRED = 3, CONTAINS_COLUMNS = 8, INTERSECT_COLUMNS = 5 };

/* The optional arguments of contains: limits for the entries of its outer calls. */
enum { ARGUMENT_FROM = REQUIRED, ARGUMENT_TO, ARGUMENTS };

/* Parameters of the statements. */
enum { BIND_SESSION = 1, BIND_FUNCTION, BIND_FROM, BIND_TO, BIND_CALL };

typedef struct spanned_call {
    int64_t call_id, stream_id, start_ns;
    int64_t end_ns; /* INT64_MAX: the call never ended */
    int64_t depth;
} spanned_call;

/* An outer call, and sums of the inner calls in it. */
typedef struct container {
    spanned_call call;
    int64_t inner_calls, inner_ns; /* inner_ns counts the time of nested inner calls once */
    int64_t first_id, first_ns;    /* first inner call; time since the outer call's entry */
    int64_t longest_id, longest_ns;
    int64_t covered_to; /* end of the latest inner call in inner_ns */
} container;

typedef struct pair {
    spanned_call a, b;
} pair;

typedef struct overlap_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *sides[2]; /* reads the calls of outer and inner, or of a and b */
    spanned_call next[2];   /* the next call of each side */
    bool has_next[2];
    container *open; /* contains: open outer calls, a stack */
    size_t open_count, open_capacity;
    container *done; /* contains: rows, in the order in which the outer calls ended */
    size_t done_count, done_capacity;
    spanned_call *running[2]; /* intervals_intersect: calls of each side that run */
    size_t running_count[2], running_capacity[2];
    pair *pairs; /* intervals_intersect: rows for the latest call */
    size_t pair_count, pair_capacity;
    size_t at;      /* current row in `done` or `pairs` */
    int64_t number; /* row number */
    int64_t session_id;
    sqlite3_stmt *above; /* returns a row if call ?2 is an ancestor of call ?1 */
} overlap_cursor;

static bool is_intersect(const overlap_cursor *cursor)
{
    return sj_table_of(&cursor->base)->kind->variant;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char *const orders[] = {"call_id", "start_ns, call_id"};
    overlap_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    int result = SQLITE_OK;
    for (int side = 0; side < 2 && result == SQLITE_OK; ++side) {
        char *sql =
            sqlite3_mprintf(sj_overlap_spans_sql, orders[((sj_table *)base)->kind->variant]);
        result = sql == NULL ? SQLITE_NOMEM
                             : sqlite3_prepare_v2(((sj_table *)base)->state->database, sql, -1,
                                                  &cursor->sides[side], NULL);
        sqlite3_free(sql);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(((sj_table *)base)->state->database,
                                    "SELECT 1 FROM ancestors(?1) WHERE call_id = ?2", -1,
                                    &cursor->above, NULL);
    }
    if (result != SQLITE_OK) {
        sqlite3_finalize(cursor->sides[1]);
        sqlite3_finalize(cursor->sides[0]);
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    overlap_cursor *cursor = (overlap_cursor *)base;
    for (int side = 0; side < 2; ++side) {
        sqlite3_finalize(cursor->sides[side]);
        free(cursor->running[side]);
    }
    sqlite3_finalize(cursor->above);
    free(cursor->open);
    free(cursor->done);
    free(cursor->pairs);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int step_side(overlap_cursor *cursor, int side)
{
    sqlite3_stmt *row = cursor->sides[side];
    const int result = sqlite3_step(row);
    cursor->has_next[side] = result == SQLITE_ROW;
    if (result == SQLITE_ROW) {
        const bool ended = sqlite3_column_type(row, 3) != SQLITE_NULL;
        cursor->next[side] =
            (spanned_call){.call_id = sqlite3_column_int64(row, 0),
                           .stream_id = sqlite3_column_int64(row, 1),
                           .start_ns = sqlite3_column_int64(row, 2),
                           .end_ns = ended ? sqlite3_column_int64(row, 3) : INT64_MAX,
                           .depth = sqlite3_column_int64(row, 4)};
    }
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* True if `outer` contains `next`. Compares times, except if `next` is entered in the nanosecond in
 * which `outer` ends. Then a later call may contain `next`, so the function reads the ancestors of
 * `next`. */
static bool is_within(overlap_cursor *cursor, const spanned_call *outer, const spanned_call *next)
{
    if (outer->stream_id != next->stream_id || outer->depth >= next->depth ||
        next->start_ns > outer->end_ns) {
        return false;
    }
    if (next->start_ns < outer->end_ns) {
        return true;
    }
    sqlite3_reset(cursor->above);
    sqlite3_bind_int64(cursor->above, 1, next->call_id);
    sqlite3_bind_int64(cursor->above, 2, outer->call_id);
    const bool is_above = sqlite3_step(cursor->above) == SQLITE_ROW;
    sqlite3_reset(cursor->above);
    return is_above;
}

/* Removes the open outer calls that do not contain `next` (NULL: all). Makes rows of the outer
 * calls that have inner calls. Returns false if out of memory. */
static bool close_outer_calls(overlap_cursor *cursor, const spanned_call *next)
{
    while (cursor->open_count != 0) {
        const container *last = &cursor->open[cursor->open_count - 1];
        if (next != NULL && is_within(cursor, &last->call, next)) {
            return true;
        }
        if (last->inner_calls != 0) {
            if (sj_array_reserve(&cursor->done, &cursor->done_capacity, cursor->done_count, 1,
                                 sizeof(*cursor->done)) != SJ_OK) {
                return false;
            }
            cursor->done[cursor->done_count++] = *last;
        }
        --cursor->open_count;
    }
    return true;
}

static void add_inner_call(container *outer, const spanned_call *inner)
{
    const bool ended = inner->end_ns != INT64_MAX;
    const int64_t duration = ended ? inner->end_ns - inner->start_ns : 0;
    if (outer->inner_calls++ == 0) {
        outer->first_id = inner->call_id;
        outer->first_ns = inner->start_ns - outer->call.start_ns;
        outer->longest_id = inner->call_id;
        outer->covered_to = INT64_MIN;
    }
    if (duration > outer->longest_ns) {
        outer->longest_ns = duration;
        outer->longest_id = inner->call_id;
    }
    if (ended && inner->end_ns > outer->covered_to) {
        outer->inner_ns += duration;
        outer->covered_to = inner->end_ns;
    }
}

static bool open_outer_call(overlap_cursor *cursor, const spanned_call *call)
{
    if (!close_outer_calls(cursor, call) ||
        sj_array_reserve(&cursor->open, &cursor->open_capacity, cursor->open_count, 1,
                         sizeof(*cursor->open)) != SJ_OK) {
        return false;
    }
    cursor->open[cursor->open_count++] = (container){.call = *call};
    return true;
}

/* Skips inner calls of streams without further outer calls. */
static int skip_streams(overlap_cursor *cursor)
{
    sqlite3_reset(cursor->sides[1]);
    sqlite3_bind_int64(cursor->sides[1], BIND_CALL, cursor->next[0].call_id);
    return step_side(cursor, 1);
}

/* Processes the next call by its id. A call of both sides is first counted as an inner call. */
static int merge(overlap_cursor *cursor)
{
    if (cursor->open_count == 0 && cursor->has_next[0] && cursor->has_next[1] &&
        cursor->next[1].stream_id < cursor->next[0].stream_id) {
        return skip_streams(cursor);
    }
    const bool is_inner =
        cursor->has_next[1] &&
        (!cursor->has_next[0] || cursor->next[1].call_id <= cursor->next[0].call_id);
    const int side = is_inner ? 1 : 0;
    bool is_done;
    if (is_inner) {
        is_done = close_outer_calls(cursor, &cursor->next[1]);
        for (size_t i = 0; is_done && i < cursor->open_count; ++i) {
            add_inner_call(&cursor->open[i], &cursor->next[1]);
        }
    } else {
        is_done = open_outer_call(cursor, &cursor->next[0]);
    }
    return is_done ? step_side(cursor, side) : SQLITE_NOMEM;
}

/* Fills `done` with the next outer calls that contain inner calls. */
static int next_containers(overlap_cursor *cursor)
{
    int result = SQLITE_OK;
    cursor->done_count = cursor->at = 0;
    while (result == SQLITE_OK && cursor->done_count == 0 &&
           (cursor->has_next[0] || cursor->open_count != 0)) {
        if (cursor->has_next[0] || cursor->has_next[1]) {
            result = merge(cursor);
        } else if (!close_outer_calls(cursor, NULL)) {
            result = SQLITE_NOMEM;
        }
    }
    return result;
}

static void remove_ended(overlap_cursor *cursor, int side, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < cursor->running_count[side]; ++i) {
        if (cursor->running[side][i].end_ns > now_ns) {
            cursor->running[side][kept++] = cursor->running[side][i];
        }
    }
    cursor->running_count[side] = kept;
}

/* Pairs the next call by entry time with the running calls of the other side. */
static int sweep(overlap_cursor *cursor)
{
    const int side = !cursor->has_next[0]   ? 1
                     : !cursor->has_next[1] ? 0
                                            : cursor->next[1].start_ns < cursor->next[0].start_ns;
    const spanned_call call = cursor->next[side];
    const int other = !side;
    remove_ended(cursor, other, call.start_ns);
    remove_ended(cursor, side, call.start_ns);
    for (size_t i = 0; i < cursor->running_count[other]; ++i) {
        const spanned_call *beside = &cursor->running[other][i];
        if (beside->call_id == call.call_id) {
            continue;
        }
        if (sj_array_reserve(&cursor->pairs, &cursor->pair_capacity, cursor->pair_count, 1,
                             sizeof(*cursor->pairs)) != SJ_OK) {
            return SQLITE_NOMEM;
        }
        cursor->pairs[cursor->pair_count++] =
            side == 0 ? (pair){.a = call, .b = *beside} : (pair){.a = *beside, .b = call};
    }
    if (sj_array_reserve(&cursor->running[side], &cursor->running_capacity[side],
                         cursor->running_count[side], 1, sizeof(call)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    cursor->running[side][cursor->running_count[side]++] = call;
    return step_side(cursor, side);
}

static int next_pairs(overlap_cursor *cursor)
{
    int result = SQLITE_OK;
    cursor->pair_count = cursor->at = 0;
    while (result == SQLITE_OK && cursor->pair_count == 0 &&
           (cursor->has_next[0] || cursor->has_next[1])) {
        result = sweep(cursor);
    }
    return result;
}

static size_t row_count(const overlap_cursor *cursor)
{
    return is_intersect(cursor) ? cursor->pair_count : cursor->done_count;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    overlap_cursor *cursor = (overlap_cursor *)base;
    ++cursor->number;
    if (++cursor->at < row_count(cursor)) {
        return SQLITE_OK;
    }
    return is_intersect(cursor) ? next_pairs(cursor) : next_containers(cursor);
}

/* Returns the integer argument `number`, or `otherwise` if it is not given or NULL. */
static int64_t read_argument(int given, sqlite3_value **argv, int number, int64_t otherwise)
{
    const int before = __builtin_popcount((unsigned)given & ((1u << number) - 1));
    return (given >> number & 1) == 0 || sqlite3_value_type(argv[before]) == SQLITE_NULL
               ? otherwise
               : sqlite3_value_int64(argv[before]);
}

static int start_side(overlap_cursor *cursor, int side, sqlite3_value *function, int64_t from_ns,
                      int64_t to_ns)
{
    sqlite3_stmt *row = cursor->sides[side];
    cursor->running_count[side] = 0;
    sqlite3_reset(row);
    sqlite3_bind_int64(row, BIND_SESSION, cursor->session_id);
    sqlite3_bind_value(row, BIND_FUNCTION, function);
    sqlite3_bind_int64(row, BIND_FROM, from_ns);
    sqlite3_bind_int64(row, BIND_TO, to_ns);
    sqlite3_bind_int64(row, BIND_CALL, INT64_MIN);
    return step_side(cursor, side);
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)argc;
    overlap_cursor *cursor = (overlap_cursor *)base;
    const int64_t from_ns = read_argument(given, argv, ARGUMENT_FROM, INT64_MIN);
    const int64_t to_ns = read_argument(given, argv, ARGUMENT_TO, INT64_MAX);
    cursor->session_id = sqlite3_value_int64(argv[0]);
    cursor->number = 0;
    cursor->open_count = cursor->done_count = cursor->pair_count = cursor->at = 0;
    int result = start_side(cursor, 0, argv[1], from_ns, to_ns);
    if (result == SQLITE_OK) { /* without to_ns: outer calls may run longer */
        result = start_side(cursor, 1, argv[2], from_ns, INT64_MAX);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    return is_intersect(cursor) ? next_pairs(cursor) : next_containers(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const overlap_cursor *cursor = (const overlap_cursor *)base;
    return cursor->at >= row_count(cursor);
}

static void give_container(const container *row, sqlite3_context *context, int column)
{
    const bool ended = row->call.end_ns != INT64_MAX;
    const int64_t values[CONTAINS_COLUMNS] = {
        row->call.call_id, ended ? row->call.end_ns - row->call.start_ns : -1,
        row->inner_calls,  row->inner_ns,
        row->first_id,     row->first_ns,
        row->longest_id,   row->longest_ns};
    if (column != 1 || ended) {
        sqlite3_result_int64(context, values[column]);
    }
}

static void give_pair(const pair *row, sqlite3_context *context, int column)
{
    const int64_t from = row->a.start_ns > row->b.start_ns ? row->a.start_ns : row->b.start_ns;
    const int64_t to = row->a.end_ns < row->b.end_ns ? row->a.end_ns : row->b.end_ns;
    const int64_t values[INTERSECT_COLUMNS] = {row->a.call_id, row->b.call_id, from, to, to - from};
    if (column < 3 || to != INT64_MAX) {
        sqlite3_result_int64(context, values[column]);
    }
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const overlap_cursor *cursor = (const overlap_cursor *)base;
    const int argument = column - sj_table_of(base)->kind->first_argument;
    if (argument == 0) {
        sqlite3_result_int64(context, cursor->session_id);
    } else if (argument < 0 && is_intersect(cursor)) {
        give_pair(&cursor->pairs[cursor->at], context, column);
    } else if (argument < 0) {
        give_container(&cursor->done[cursor->at], context, column);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = ((const overlap_cursor *)base)->number;
    return SQLITE_OK;
}

static const sqlite3_module overlap_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_overlaps(sj_query_state *state)
{
    static const sj_table_kind contains = {.name = "contains",
                                           .declaration = sj_overlap_columns_sql,
                                           .first_argument = CONTAINS_COLUMNS,
                                           .argument_count = ARGUMENTS,
                                           .required_count = REQUIRED,
                                           .rows = 10000,
                                           .cost = 1e6};
    static const sj_table_kind intersect = {
        .name = "intervals_intersect",
        .declaration = "CREATE TABLE intervals_intersect(a_call_id INTEGER, b_call_id INTEGER, "
                       "from_ns INTEGER, to_ns INTEGER, overlap_ns INTEGER, session_id HIDDEN, "
                       "a_function HIDDEN, b_function HIDDEN)",
        .variant = true,
        .first_argument = INTERSECT_COLUMNS,
        .argument_count = REQUIRED,
        .required_count = REQUIRED,
        .rows = 10000,
        .cost = 1e6};
    const int result = sj_table_register(state, &contains, &overlap_methods);
    return result == SQLITE_OK ? sj_table_register(state, &intersect, &overlap_methods) : result;
}
