/* The table function concurrency(session_id [, function [, since_ns, until_ns]]): how many calls of
 * a function (an id or a name; NULL: outermost calls) ran at once. It has one row per period with a
 * constant number. It counts only calls that were entered from since_ns to until_ns.
 *
 * Design notes. One statement over `calls` reads the entries sorted by time, another one the exits,
 * and the cursor merges them. A call that never ended runs until the last row, whose end is NULL.
 */
#include "schema/queries/query/concurrency_table.h"
#include "collector-server/query/table_function.h"

/* The columns. The arguments follow as hidden columns. */
enum { FROM, TO, RUNNING, COLUMNS };
/* The arguments, after session_id and function. */
enum { SINCE = 2, UNTIL, ARGUMENTS };

enum { ENTRY, EXIT, SIDES };

typedef struct concurrency_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *sides[SIDES];
    int64_t next_ns[SIDES]; /* times of the next entry and of the next exit */
    bool has_next[SIDES];
    int64_t from_ns, running; /* values of the current row */
    int64_t to_ns, change;    /* when, and by how much, `running` changes next */
    bool is_last;             /* `running` does not change any more */
    bool end;
    int64_t number;                      /* row number, from 1 */
    sqlite3_value *arguments[ARGUMENTS]; /* NULL: not given */
} concurrency_cursor;

static int prepare_side(sqlite3 *database, const char *column, sqlite3_stmt **side)
{
    char *sql = sqlite3_mprintf(sj_concurrency_spans_sql, column, column);
    const int result =
        sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(database, sql, -1, side, NULL);
    sqlite3_free(sql);
    return result;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    sqlite3 *database = ((sj_table *)base)->state->database;
    concurrency_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    int result = prepare_side(database, "start_ns", &cursor->sides[ENTRY]);
    if (result == SQLITE_OK) {
        result = prepare_side(database, "end_ns", &cursor->sides[EXIT]);
    }
    if (result != SQLITE_OK) {
        sqlite3_finalize(cursor->sides[ENTRY]);
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void free_arguments(concurrency_cursor *cursor)
{
    for (size_t i = 0; i < ARGUMENTS; ++i) {
        sqlite3_value_free(cursor->arguments[i]);
        cursor->arguments[i] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    concurrency_cursor *cursor = (concurrency_cursor *)base;
    sqlite3_finalize(cursor->sides[ENTRY]);
    sqlite3_finalize(cursor->sides[EXIT]);
    free_arguments(cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* Moves to the next entry or exit. Skips calls that never ended, which come first among the
 * exits. */
static int step_side(concurrency_cursor *cursor, int side)
{
    sqlite3_stmt *row = cursor->sides[side];
    int result = sqlite3_step(row);
    while (result == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_NULL) {
        result = sqlite3_step(row);
    }
    cursor->has_next[side] = result == SQLITE_ROW;
    cursor->next_ns[side] = result == SQLITE_ROW ? sqlite3_column_int64(row, 0) : INT64_MAX;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Finds the next time at which the number of running calls changes. `change` is 0 if there is
 * none. */
static int find_change(concurrency_cursor *cursor)
{
    int result = SQLITE_OK;
    cursor->change = 0;
    while (result == SQLITE_OK && cursor->change == 0 &&
           (cursor->has_next[ENTRY] || cursor->has_next[EXIT])) {
        const int64_t at = cursor->next_ns[ENTRY] < cursor->next_ns[EXIT] ? cursor->next_ns[ENTRY]
                                                                          : cursor->next_ns[EXIT];
        for (int side = ENTRY; side < SIDES && result == SQLITE_OK; ++side) {
            while (result == SQLITE_OK && cursor->has_next[side] && cursor->next_ns[side] == at) {
                cursor->change += side == ENTRY ? 1 : -1;
                result = step_side(cursor, side);
            }
        }
        cursor->to_ns = at;
    }
    return result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    concurrency_cursor *cursor = (concurrency_cursor *)base;
    ++cursor->number;
    cursor->end = cursor->change == 0;
    cursor->from_ns = cursor->to_ns;
    cursor->running += cursor->change;
    const int result = cursor->end ? SQLITE_OK : find_change(cursor);
    cursor->is_last = cursor->change == 0;
    return result;
}

static int start_side(concurrency_cursor *cursor, int side)
{
    static const int64_t widest[ARGUMENTS] = {[SINCE] = INT64_MIN, [UNTIL] = INT64_MAX};
    sqlite3_stmt *row = cursor->sides[side];
    sqlite3_reset(row);
    sqlite3_clear_bindings(row);
    for (int i = 0; i < ARGUMENTS; ++i) {
        const bool is_given =
            cursor->arguments[i] != NULL && sqlite3_value_type(cursor->arguments[i]) != SQLITE_NULL;
        if (is_given) {
            sqlite3_bind_value(row, i + 1, cursor->arguments[i]);
        } else if (i >= SINCE) {
            sqlite3_bind_int64(row, i + 1, widest[i]);
        }
    }
    return step_side(cursor, side);
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    concurrency_cursor *cursor = (concurrency_cursor *)base;
    free_arguments(cursor);
    for (int i = 0, next = 0; i < ARGUMENTS && next < argc; ++i) {
        if ((given >> i & 1) != 0) {
            cursor->arguments[i] = sqlite3_value_dup(argv[next++]);
        }
    }
    cursor->number = cursor->running = 0;
    int result = start_side(cursor, ENTRY);
    if (result == SQLITE_OK) {
        result = start_side(cursor, EXIT);
    }
    if (result == SQLITE_OK) {
        result = find_change(cursor);
    }
    return result == SQLITE_OK ? next_row(base) : result;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((const concurrency_cursor *)base)->end;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const concurrency_cursor *cursor = (const concurrency_cursor *)base;
    if (column == FROM) {
        sqlite3_result_int64(context, cursor->from_ns);
    } else if (column == TO && !cursor->is_last) {
        sqlite3_result_int64(context, cursor->to_ns);
    } else if (column == RUNNING) {
        sqlite3_result_int64(context, cursor->running);
    } else if (column >= COLUMNS && cursor->arguments[column - COLUMNS] != NULL) {
        sqlite3_result_value(context, cursor->arguments[column - COLUMNS]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = ((const concurrency_cursor *)base)->number;
    return SQLITE_OK;
}

static const sqlite3_module concurrency_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_concurrency(sj_query_state *state)
{
    static const sj_table_kind concurrency = {
        .name = "concurrency",
        .declaration = "CREATE TABLE concurrency(from_ns INTEGER, to_ns INTEGER, running INTEGER, "
                       "session_id HIDDEN, function HIDDEN, since_ns HIDDEN, until_ns HIDDEN)",
        .first_argument = COLUMNS,
        .argument_count = ARGUMENTS,
        .required_count = 1,
        .rows = 10000,
        .cost = 1e6};
    return sj_table_register(state, &concurrency, &concurrency_methods);
}
