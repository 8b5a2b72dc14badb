/* The table function descendants(call_id): all calls inside a call, with the columns of `calls`. It
 * reads the table `calls` of the same connection.
 *
 * Design notes. Call ids number a stream's calls in the order of entry. So the descendants are the
 * next calls, up to the first one that is not deeper. */
#include "schema/queries/query/lineage_table.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/table_function.h"

typedef struct lineage_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *one;   /* reads the depth of a call */
    sqlite3_stmt *below; /* reads the later calls of a stream */
    bool end;
    int64_t root_id; /* the argument: a call id */
    int64_t depth;   /* depth of that call */
} lineage_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char one_sql[] = "SELECT depth FROM calls WHERE call_id = ?1";
    static const char below_sql[] =
        "SELECT * FROM calls WHERE call_id > ?1 AND call_id <= ?2 ORDER BY call_id";
    lineage_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    sqlite3 *database = ((sj_table *)base)->state->database;
    int result = sqlite3_prepare_v2(database, one_sql, -1, &cursor->one, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, below_sql, -1, &cursor->below, NULL);
    }
    if (result != SQLITE_OK) {
        sqlite3_finalize(cursor->one);
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    lineage_cursor *cursor = (lineage_cursor *)base;
    sqlite3_finalize(cursor->one);
    sqlite3_finalize(cursor->below);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int read_descendant(lineage_cursor *cursor)
{
    const int result = sqlite3_step(cursor->below);
    cursor->end = result != SQLITE_ROW ||
                  sqlite3_column_int64(cursor->below, SJ_CALLS_DEPTH) <= cursor->depth;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    return read_descendant((lineage_cursor *)base);
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan_number;
    (void)plan;
    (void)argc;
    lineage_cursor *cursor = (lineage_cursor *)base;
    cursor->end = false;
    cursor->root_id = sqlite3_value_int64(argv[0]);
    sqlite3_reset(cursor->one);
    sqlite3_reset(cursor->below);
    sqlite3_bind_value(cursor->one, 1, argv[0]);
    const int result = sqlite3_step(cursor->one);
    if (result != SQLITE_ROW) {
        cursor->end = true;
        return result == SQLITE_DONE ? SQLITE_OK : result;
    }
    cursor->depth = sqlite3_column_int64(cursor->one, 0);
    sqlite3_reset(cursor->one);
    sqlite3_bind_int64(cursor->below, 1, cursor->root_id);
    sqlite3_bind_int64(cursor->below, 2,
                       cursor->root_id | ((INT64_C(1) << SJ_CALL_INDEX_BITS) - 1));
    return read_descendant(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((lineage_cursor *)base)->end;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    lineage_cursor *cursor = (lineage_cursor *)base;
    if (column == SJ_CALLS_COLUMN_COUNT) {
        sqlite3_result_int64(context, cursor->root_id);
    } else {
        sqlite3_result_value(context, sqlite3_column_value(cursor->below, column));
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = sqlite3_column_int64(((lineage_cursor *)base)->below, SJ_CALLS_CALL_ID);
    return SQLITE_OK;
}

static const sqlite3_module lineage_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_lineage(sj_query_state *state)
{
    static const sj_table_kind below = {.name = "descendants",
                                        .declaration = sj_lineage_descendants_columns_sql,
                                        .first_argument = SJ_CALLS_COLUMN_COUNT,
                                        .argument_count = 1,
                                        .required_count = 1,
                                        .rows = 10000,
                                        .cost = 40000};
    return sj_table_register(state, &below, &lineage_methods);
}
