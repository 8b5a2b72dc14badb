/* The table function ancestors(call_id): all calls that contain a call, innermost first, with the
 * columns of `calls`.
 *
 * Design notes. The rows of a decoded block name each other's callers. So the cursor follows the
 * callers within a block, and reads an earlier block only when a caller is not in this one: for a
 * stack of 50,000 calls, it decodes once each block in which the stack was entered. */
#include "collector-server/query/calls_row.h"
#include "collector-server/query/table_function.h"
#include "proto/base/bisect.h"
#include "schema/queries/query/lineage_table.h"

typedef struct ancestors_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan scan;
    bool is_open; /* `scan` is open */
    bool holds;   /* `scan` has the rows of a block */
    bool end;
    sj_calls_row at;
    size_t row;      /* current row of the block */
    int64_t root_id; /* the argument: a call id */
} ancestors_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    ancestors_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    cursor->at.costs.database = ((sj_table *)base)->state->database;
    cursor->at.scan = &cursor->scan;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    ancestors_cursor *cursor = (ancestors_cursor *)base;
    if (cursor->is_open) {
        sj_block_scan_close(&cursor->scan);
    }
    sj_cost_lookup_deinit(&cursor->at.costs);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* Finds the row of a call in the current block. Returns false if the block does not have it. */
static bool find_row(ancestors_cursor *cursor, int64_t id)
{
    if (!cursor->holds || id >> SJ_CALL_INDEX_BITS != cursor->scan.stream_id) {
        return false;
    }
    const sj_block_rows *rows = &cursor->scan.rows;
    const uint64_t index = (uint64_t)id & ((UINT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
    cursor->row = SJ_BISECT(0, rows->count, i, rows->indexes[i] < index);
    return cursor->row < rows->count && rows->indexes[cursor->row] == index;
}

/* Makes a call the current row, and decodes its block if it is not the current one. Sets `end` if
 * no block has the call. */
static int read_call(ancestors_cursor *cursor, int64_t id)
{
    cursor->end = !find_row(cursor, id);
    if (!cursor->end) {
        return SQLITE_OK;
    }
    sj_scan_filter filter = sj_scan_everything;
    filter.first_call = filter.last_call = id;
    int result = sj_block_scan_start(&cursor->scan, &filter, SJ_SCAN_TIMES);
    while (result == SQLITE_OK && cursor->end) {
        cursor->holds = false;
        result = sj_block_scan_next(&cursor->scan);
        if (result != SQLITE_ROW) {
            return result == SQLITE_DONE ? SQLITE_OK : result;
        }
        cursor->at.frame_depth = UINT32_MAX;
        result = sj_block_scan_rows(&cursor->scan, true);
        cursor->holds = result == SQLITE_OK;
        cursor->end = !find_row(cursor, id);
        result = result == SJ_SCAN_CONTRADICTION ? SQLITE_OK : result;
    }
    return result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ancestors_cursor *cursor = (ancestors_cursor *)base;
    const uint32_t parent = cursor->scan.rows.parents[cursor->row];
    if (parent != SJ_ROW_NO_PARENT) {
        cursor->row = parent;
        return SQLITE_OK;
    }
    const int64_t id = sj_calls_parent(&cursor->at, cursor->row);
    cursor->end = id == SJ_CALLS_NO_VALUE;
    return cursor->end ? SQLITE_OK : read_call(cursor, id);
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan_number;
    (void)plan;
    (void)argc;
    ancestors_cursor *cursor = (ancestors_cursor *)base;
    int result = SQLITE_OK;
    if (!cursor->is_open) {
        cursor->is_open = true;
        result = sj_block_scan_open(&cursor->scan, ((sj_table *)base->pVtab)->state);
    }
    cursor->end = true;
    cursor->root_id = sqlite3_value_int64(argv[0]);
    if (result == SQLITE_OK && sqlite3_value_numeric_type(argv[0]) == SQLITE_INTEGER) {
        result = read_call(cursor, cursor->root_id);
    }
    return result == SQLITE_OK && !cursor->end ? next_row(base) : result;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((ancestors_cursor *)base)->end;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    ancestors_cursor *cursor = (ancestors_cursor *)base;
    if (column == SJ_CALLS_COLUMN_COUNT) {
        sqlite3_result_int64(context, cursor->root_id);
    } else {
        sj_calls_give(context, column, sj_calls_value(&cursor->at, cursor->row, column));
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    ancestors_cursor *cursor = (ancestors_cursor *)base;
    *rowid = sj_calls_value(&cursor->at, cursor->row, SJ_CALLS_CALL_ID);
    return SQLITE_OK;
}

static const sqlite3_module ancestors_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_ancestors(sj_query_state *state)
{
    static const sj_table_kind kind = {.name = "ancestors",
                                       .declaration = sj_lineage_ancestors_columns_sql,
                                       .first_argument = SJ_CALLS_COLUMN_COUNT,
                                       .argument_count = 1,
                                       .required_count = 1,
                                       .rows = 20,
                                       .cost = 20000};
    return sj_table_register(state, &kind, &ancestors_methods);
}
