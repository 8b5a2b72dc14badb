/* The SQL tables diff_functions(a, b [, by]) and diff_tree(a, b [, by]) compare two sets of
 * sessions (session_set.h). diff_functions has a row per function, diff_tree a row per call
 * path. `by` is "time" (self time, the default), "cpu" or "allocated". Row 0 is the total: its
 * function_id_a and function_id_b are NULL.
 *
 * Design notes. filter_rows makes the whole comparison at the start of each scan. The cursor
 * keeps the rows until its next scan. */
#include "schema/queries/query/diff_table.h"
#include "collector-server/query/compare.h"
#include "collector-server/query/table_function.h"

enum {
    COLUMN_ROW,
    COLUMN_PARENT_ROW,
    COLUMN_DEPTH,
    COLUMN_NAME,
    COLUMN_MODULE,
    COLUMN_VERDICT,
    COLUMN_DECIDED_BY,
    COLUMN_RATIO,
    COLUMN_RATIO_LOW,
    COLUMN_RATIO_HIGH,
    COLUMN_P_VALUE,
    COLUMN_P_ADJUSTED,
    COLUMN_SELF_NS_A,
    COLUMN_SELF_NS_B,
    COLUMN_TYPICAL_NS_A,
    COLUMN_TYPICAL_NS_B,
    COLUMN_TOTAL_NS_A,
    COLUMN_TOTAL_NS_B,
    COLUMN_CALLS_A,
    COLUMN_CALLS_B,
    COLUMN_CALLS_CHANGE,
    COLUMN_CALLS_RATIO,
    COLUMN_SESSIONS_A,
    COLUMN_SESSIONS_B,
    COLUMN_FUNCTION_ID_A,
    COLUMN_FUNCTION_ID_B,
    COLUMN_SYMBOL_KEY,
    COLUMN_COST_A,
    COLUMN_COST_B,
    COLUMN_COMPARED_A,
    COLUMN_COMPARED_B,
    COLUMN_NEEDED_SESSIONS,
    COLUMN_MATCHED_SHARE,
    COLUMN_IS_COMPARABLE,
    COLUMN_A, /* hidden columns: the arguments a, b and by */
    COLUMN_B,
    COLUMN_BY
};

typedef struct diff_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *name;
    sj_compare *compare;
    const sj_compare_row *rows;
    size_t count, at;
    sj_compare_of of;
    bool at_row_known; /* the statement `name` holds the function of the current row */
} diff_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char sql[] = "SELECT f.name, m.path FROM functions AS f JOIN modules AS m USING "
                              "(module_id) WHERE f.function_id = ?1";
    diff_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    const int result =
        sqlite3_prepare_v2(((sj_table *)base)->state->database, sql, -1, &cursor->name, NULL);
    if (result != SQLITE_OK) {
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    diff_cursor *cursor = (diff_cursor *)base;
    sqlite3_finalize(cursor->name);
    sj_compare_free(cursor->compare);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int refuse(sqlite3_vtab_cursor *base, const char *text)
{
    sqlite3_free(base->pVtab->zErrMsg);
    base->pVtab->zErrMsg = sqlite3_mprintf("%s", text);
    return SQLITE_ERROR;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)argc;
    diff_cursor *cursor = (diff_cursor *)base;
    const sj_table *table = sj_table_of(base);
    const char *a = (const char *)sqlite3_value_text(argv[0]);
    const char *b = (const char *)sqlite3_value_text(argv[1]);
    const sj_compare_side sides[2] = {{table->state->database, a != NULL ? a : ""},
                                      {table->state->database, b != NULL ? b : ""}};
    const char *by = (given & 4) != 0 ? (const char *)sqlite3_value_text(argv[2]) : NULL;
    cursor->of = by != NULL ? sj_compare_of_find(by) : SJ_COMPARE_TIME;
    if (cursor->of == SJ_COMPARE_OF) {
        return refuse(base, "sessions are compared by time, cpu or allocated");
    }
    const sj_compare_options options = {.of = cursor->of, .tree = table->kind->variant};
    sj_error error = {0};
    sj_compare_free(cursor->compare);
    cursor->compare = NULL;
    cursor->at = cursor->count = 0;
    cursor->at_row_known = false;
    if (sj_compare_run(sides, &options, &cursor->compare, &error) != SJ_OK) {
        return error.status == SJ_ENOMEM ? SQLITE_NOMEM : refuse(base, error.text);
    }
    cursor->rows = sj_compare_rows(cursor->compare, &cursor->count);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    diff_cursor *cursor = (diff_cursor *)base;
    ++cursor->at;
    cursor->at_row_known = false;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const diff_cursor *cursor = (const diff_cursor *)base;
    return cursor->at >= cursor->count;
}

static int give_name(diff_cursor *cursor, sqlite3_context *context, int column)
{
    const sj_compare_row *row = &cursor->rows[cursor->at];
    if (cursor->at == 0) {
        if (column == 0) {
            sqlite3_result_text(context, "(everything)", -1, SQLITE_STATIC);
        }
        return SQLITE_OK;
    }
    if (!cursor->at_row_known) {
        sqlite3_reset(cursor->name);
        sqlite3_bind_int64(cursor->name, 1,
                           row->function_id[1] != 0 ? row->function_id[1] : row->function_id[0]);
        const int result = sqlite3_step(cursor->name);
        if (result != SQLITE_ROW) {
            return result == SQLITE_DONE ? SQLITE_OK : result;
        }
        cursor->at_row_known = true;
    }
    sqlite3_result_value(context, sqlite3_column_value(cursor->name, column));
    return SQLITE_OK;
}

/* Compares the least and most calls of a session on each side. Calls are counted exactly, so
 * two ranges that do not overlap prove a change without a test. */
static const char *calls_change(const sj_compare_row *row)
{
    if (row->least_calls[1] > row->most_calls[0]) {
        return "more";
    }
    if (row->most_calls[1] < row->least_calls[0]) {
        return "fewer";
    }
    const bool constant =
        row->least_calls[0] == row->most_calls[0] && row->least_calls[1] == row->most_calls[1];
    return constant ? "same" : "varies";
}

static void give_real(sqlite3_context *context, double value, bool known)
{
    if (known) {
        sqlite3_result_double(context, value);
    }
}

static void give_id(sqlite3_context *context, int64_t id)
{
    if (id != 0) {
        sqlite3_result_int64(context, id);
    }
}

static void give_measure(const sj_compare_row *row, sqlite3_context *context, int column,
                         bool has_costs)
{
    const struct {
        int first_column; /* the column of side A; side B has the next column */
        const double *values;
    } pairs[] = {{COLUMN_SELF_NS_A, row->self_ns},
                 {COLUMN_TYPICAL_NS_A, row->typical_ns},
                 {COLUMN_TOTAL_NS_A, row->total_ns},
                 {COLUMN_COMPARED_A, row->compared},
                 {COLUMN_COST_A, row->costs}};
    const size_t count = sizeof(pairs) / sizeof(pairs[0]) - (has_costs ? 0 : 1);
    if (column == COLUMN_CALLS_A || column == COLUMN_CALLS_B) {
        sqlite3_result_double(context, row->calls[column - COLUMN_CALLS_A]);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        const int side = column - pairs[i].first_column;
        if (side == 0 || side == 1) {
            sqlite3_result_int64(context, (int64_t)pairs[i].values[side]);
            return;
        }
    }
}

/* Sets the result to a field of the test that decided the verdict. An unknown ratio or p-value
 * stays NULL. */
static void give_test(const sj_compare_row *row, sqlite3_context *context, int column)
{
    const sj_compare_test *test = &row->tests[row->decided_by];
    const bool is_tested = row->is_tested;
    switch (column) {
    case COLUMN_DECIDED_BY:
        sqlite3_result_text(context, row->decided_by == SJ_COMPARE_BY_SUM ? "sum" : "typical", -1,
                            SQLITE_STATIC);
        break;
    case COLUMN_RATIO:
        give_real(context, test->ratio, test->ratio > 0);
        break;
    case COLUMN_RATIO_LOW:
        give_real(context, test->ratio_low, test->ratio_low > 0);
        break;
    case COLUMN_RATIO_HIGH:
        give_real(context, test->ratio_high, test->ratio_low > 0);
        break;
    case COLUMN_P_VALUE:
        give_real(context, test->p_value, is_tested);
        break;
    default:
        give_real(context, test->p_adjusted, is_tested);
        break;
    }
}

/* Sets the result to `is_comparable` or `matched_share`. Only row 0 has them; other rows have
 * NULL. */
static void give_match(const diff_cursor *cursor, sqlite3_context *context, int column)
{
    double share;
    const bool is_known = sj_compare_matched_share(cursor->compare, &share);
    if (cursor->at == 0 && column == COLUMN_IS_COMPARABLE) {
        sqlite3_result_int(context, !sj_compare_is_stripped(cursor->compare));
    } else if (cursor->at == 0) {
        give_real(context, share, is_known);
    }
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    diff_cursor *cursor = (diff_cursor *)base;
    const sj_compare_row *row = &cursor->rows[cursor->at];
    switch (column) {
    case COLUMN_ROW:
        sqlite3_result_int64(context, (int64_t)cursor->at);
        break;
    case COLUMN_PARENT_ROW:
        give_id(context, row->parent);
        break;
    case COLUMN_DEPTH:
        sqlite3_result_int64(context, row->depth);
        break;
    case COLUMN_NAME:
    case COLUMN_MODULE:
        return give_name(cursor, context, column - COLUMN_NAME);
    case COLUMN_VERDICT:
        sqlite3_result_text(context, sj_compare_verdict_name(row->verdict, cursor->of), -1,
                            SQLITE_STATIC);
        break;
    case COLUMN_CALLS_CHANGE:
        sqlite3_result_text(context, calls_change(row), -1, SQLITE_STATIC);
        break;
    case COLUMN_CALLS_RATIO:
        give_real(context, row->calls_ratio, row->calls_ratio > 0);
        break;
    case COLUMN_SESSIONS_A:
    case COLUMN_SESSIONS_B:
        sqlite3_result_int64(context, row->sessions[column - COLUMN_SESSIONS_A]);
        break;
    case COLUMN_FUNCTION_ID_A:
    case COLUMN_FUNCTION_ID_B:
        give_id(context, row->function_id[column - COLUMN_FUNCTION_ID_A]);
        break;
    case COLUMN_SYMBOL_KEY:
        give_id(context, (int64_t)row->symbol_key);
        break;
    case COLUMN_NEEDED_SESSIONS:
        give_id(context, row->needed_sessions);
        break;
    case COLUMN_MATCHED_SHARE:
    case COLUMN_IS_COMPARABLE:
        give_match(cursor, context, column);
        break;
    default: /* give_measure leaves the hidden arguments NULL */
        if (column >= COLUMN_DECIDED_BY && column <= COLUMN_P_ADJUSTED) {
            give_test(row, context, column);
        } else {
            give_measure(row, context, column, cursor->of != SJ_COMPARE_TIME);
        }
        break;
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const diff_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module diff_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_diffs(sj_query_state *state)
{
    static const sj_table_kind functions = {.name = "diff_functions",
                                            .declaration = sj_diff_columns_sql,
                                            .first_argument = COLUMN_A,
                                            .argument_count = 3,
                                            .required_count = 2,
                                            .rows = 2000,
                                            .cost = 100000};
    static const sj_table_kind tree = {.name = "diff_tree",
                                       .declaration = sj_diff_columns_sql,
                                       .variant = true,
                                       .first_argument = COLUMN_A,
                                       .argument_count = 3,
                                       .required_count = 2,
                                       .rows = 2000,
                                       .cost = 100000};
    const int result = sj_table_register(state, &functions, &diff_methods);
    return result == SQLITE_OK ? sj_table_register(state, &tree, &diff_methods) : result;
}
