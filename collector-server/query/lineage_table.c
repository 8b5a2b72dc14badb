/* descendants(call_id) and ancestors(call_id): the calls below and above one call.
 *
 * Design notes. Call ids number a stream's calls in preorder. So the descendants are the calls
 * after it while they are deeper: a walk from its block that stops at the first call that is not.
 * Ancestors are found call by call, each in its own block. Both use the `calls` table of the same
 * connection and have its columns. */
#include "schema/queries/query/lineage_table.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/table_function.h"

typedef struct lineage_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *one;   /* the call itself */
    sqlite3_stmt *below; /* the calls after it in its stream */
    sqlite3_stmt *current;
    bool end;
    int64_t of;
    int64_t depth; /* depth of the call */
} lineage_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char one_sql[] = "SELECT * FROM calls WHERE call_id = ?1";
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

static bool goes_up(const lineage_cursor *cursor)
{
    return sj_table_of(&cursor->base)->kind->variant;
}

static int step_up(lineage_cursor *cursor, bool has_parent, int64_t parent)
{
    sqlite3_reset(cursor->one);
    if (!has_parent) {
        cursor->end = true;
        return SQLITE_OK;
    }
    sqlite3_bind_int64(cursor->one, 1, parent);
    const int result = sqlite3_step(cursor->one);
    cursor->end = result != SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int step_down(lineage_cursor *cursor)
{
    const int result = sqlite3_step(cursor->below);
    cursor->end = result != SQLITE_ROW ||
                  sqlite3_column_int64(cursor->below, SJ_CALLS_DEPTH) <= cursor->depth;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    lineage_cursor *cursor = (lineage_cursor *)base;
    if (!goes_up(cursor)) {
        return step_down(cursor);
    }
    const bool has_parent = sqlite3_column_type(cursor->one, SJ_CALLS_PARENT_ID) != SQLITE_NULL;
    return step_up(cursor, has_parent, sqlite3_column_int64(cursor->one, SJ_CALLS_PARENT_ID));
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan_number;
    (void)plan;
    (void)argc;
    lineage_cursor *cursor = (lineage_cursor *)base;
    cursor->end = false;
    cursor->of = sqlite3_value_int64(argv[0]);
    sqlite3_reset(cursor->one);
    sqlite3_reset(cursor->below);
    sqlite3_bind_value(cursor->one, 1, argv[0]);
    const int result = sqlite3_step(cursor->one);
    if (result != SQLITE_ROW) {
        cursor->end = true;
        return result == SQLITE_DONE ? SQLITE_OK : result;
    }
    if (goes_up(cursor)) {
        cursor->current = cursor->one;
        return next_row(base);
    }
    cursor->depth = sqlite3_column_int64(cursor->one, SJ_CALLS_DEPTH);
    cursor->current = cursor->below;
    sqlite3_reset(cursor->one);
    sqlite3_bind_int64(cursor->below, 1, cursor->of);
    sqlite3_bind_int64(cursor->below, 2, cursor->of | ((INT64_C(1) << SJ_CALL_INDEX_BITS) - 1));
    return step_down(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((lineage_cursor *)base)->end;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    lineage_cursor *cursor = (lineage_cursor *)base;
    if (column == SJ_CALLS_COLUMN_COUNT) {
        sqlite3_result_int64(context, cursor->of);
    } else {
        sqlite3_result_value(context, sqlite3_column_value(cursor->current, column));
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = sqlite3_column_int64(((lineage_cursor *)base)->current, SJ_CALLS_CALL_ID);
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
    static const sj_table_kind above = {.name = "ancestors",
                                        .declaration = sj_lineage_ancestors_columns_sql,
                                        .variant = true,
                                        .first_argument = SJ_CALLS_COLUMN_COUNT,
                                        .argument_count = 1,
                                        .required_count = 1,
                                        .rows = 20,
                                        .cost = 20000};
    const int result = sj_table_register(state, &below, &lineage_methods);
    return result == SQLITE_OK ? sj_table_register(state, &above, &lineage_methods) : result;
}
