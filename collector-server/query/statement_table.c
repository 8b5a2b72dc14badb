/* siblings(call_id) and sequence(call_id, call_id): table functions that run a SELECT over the
 * table `calls` with their arguments.
 *
 * siblings returns all calls that the caller of a call made, with the call itself. For an outermost
 * call, it returns all outermost calls of its stream. sequence returns the calls of all threads
 * that began after the first call and before the second. */
#include "schema/queries/query/statement_table.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/table_function.h"

#include <string.h>

enum { MAX_ARGUMENTS = 2 };

typedef struct statement_kind {
    sj_table_kind table;
    const char *sql;
} statement_kind;

typedef struct statement_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *row;
    int64_t number;
    bool end;
    sqlite3_value *arguments[MAX_ARGUMENTS];
} statement_cursor;

static const statement_kind siblings = {
    .table = {.name = "siblings",
              .declaration = sj_siblings_columns_sql,
              .first_argument = SJ_CALLS_COLUMN_COUNT,
              .argument_count = 1,
              .required_count = 1,
              .rows = 100,
              .cost = 5000},
    .sql = sj_siblings_sql,
};

static const statement_kind sequence = {
    .table = {.name = "sequence",
              .declaration = sj_sequence_columns_sql,
              .first_argument = SJ_CALLS_COLUMN_COUNT,
              .argument_count = 2,
              .required_count = 2,
              .rows = 1000,
              .cost = 20000},
    .sql = sj_sequence_sql,
};

static const statement_kind *const kinds[] = {&siblings, &sequence};

static const char *find_sql(const sqlite3_vtab *base)
{
    const char *name = ((const sj_table *)base)->kind->name;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        if (strcmp(kinds[i]->table.name, name) == 0) {
            return kinds[i]->sql;
        }
    }
    return "";
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    statement_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    const int result = sqlite3_prepare_v2(((sj_table *)base)->state->database, find_sql(base), -1,
                                          &cursor->row, NULL);
    if (result != SQLITE_OK) {
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void free_arguments(statement_cursor *cursor)
{
    for (size_t i = 0; i < MAX_ARGUMENTS; ++i) {
        sqlite3_value_free(cursor->arguments[i]);
        cursor->arguments[i] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    statement_cursor *cursor = (statement_cursor *)base;
    sqlite3_finalize(cursor->row);
    free_arguments(cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    statement_cursor *cursor = (statement_cursor *)base;
    const int result = sqlite3_step(cursor->row);
    cursor->end = result != SQLITE_ROW;
    ++cursor->number;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    statement_cursor *cursor = (statement_cursor *)base;
    sqlite3_reset(cursor->row);
    sqlite3_clear_bindings(cursor->row);
    free_arguments(cursor);
    for (int i = 0, next = 0; i < MAX_ARGUMENTS && next < argc; ++i) {
        if ((given >> i & 1) != 0) {
            cursor->arguments[i] = sqlite3_value_dup(argv[next++]);
            sqlite3_bind_value(cursor->row, i + 1, cursor->arguments[i]);
        }
    }
    cursor->number = 0;
    return next_row(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((const statement_cursor *)base)->end;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    statement_cursor *cursor = (statement_cursor *)base;
    const int argument = column - sj_table_of(base)->kind->first_argument;
    if (argument < 0) {
        sqlite3_result_value(context, sqlite3_column_value(cursor->row, column));
    } else if (cursor->arguments[argument] != NULL) {
        sqlite3_result_value(context, cursor->arguments[argument]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = ((const statement_cursor *)base)->number;
    return SQLITE_OK;
}

static const sqlite3_module statement_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_statements(sj_query_state *state)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && result == SQLITE_OK; ++i) {
        result = sj_table_register(state, &kinds[i]->table, &statement_methods);
    }
    return result;
}
