#include "collector-server/query/query.h"

#include "collector-server/query/query_state.h"

#include <string.h>

sj_query_state *sj_query_state_hold(sj_query_state *state)
{
    ++state->references;
    return state;
}

static void clear_warnings(sj_query_state *state)
{
    for (unsigned i = 0; i < state->warning_count; ++i) {
        sqlite3_free(state->warnings[i].text);
    }
    state->warning_count = 0;
    state->warnings_left_out = 0;
}

void sj_query_state_release(void *held)
{
    sj_query_state *state = held;
    if (--state->references == 0) {
        clear_warnings(state);
        sqlite3_free(state);
    }
}

void sj_query_warn(sj_query_state *state, int64_t block_id, char *text)
{
    if (text == NULL) {
        return;
    }
    for (unsigned i = 0; i < state->warning_count; ++i) {
        if (state->warnings[i].block_id == block_id) {
            sqlite3_free(text);
            return;
        }
    }
    if (state->warning_count == SJ_QUERY_MAX_WARNINGS) {
        ++state->warnings_left_out;
        sqlite3_free(text);
        return;
    }
    state->warnings[state->warning_count++] = (sj_query_warning){block_id, text};
}

static void query_warnings(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sj_query_state *state = sqlite3_user_data(context);
    if (state->warning_count == 0) {
        return; /* NULL */
    }
    sqlite3_str *lines = sqlite3_str_new(state->database);
    for (unsigned i = 0; i < state->warning_count; ++i) {
        sqlite3_str_appendf(lines, "%s%s", i == 0 ? "" : "\n", state->warnings[i].text);
    }
    if (state->warnings_left_out != 0) {
        sqlite3_str_appendf(lines, "\n... and %lld more reads of such blocks",
                            (long long)state->warnings_left_out);
    }
    clear_warnings(state);
    char *text = sqlite3_str_finish(lines);
    if (text == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_text(context, text, -1, sqlite3_free);
}

char *sj_query_take_warnings(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(database, "SELECT query_warnings()", -1, &statement, NULL) ==
            SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        text = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return text;
}

static int register_warnings(sj_query_state *state)
{
    return sqlite3_create_function_v2(state->database, "query_warnings", 0,
                                      SQLITE_UTF8 | SQLITE_DIRECTONLY, sj_query_state_hold(state),
                                      query_warnings, NULL, NULL, sj_query_state_release);
}

sj_status sj_query_register(sqlite3 *database, sj_error *error)
{
    static int (*const registrations[])(sj_query_state *) = {
        register_warnings,       sj_register_calls,    sj_register_call_aggregate,
        sj_register_lineage,     sj_register_trees,    sj_register_durations,
        sj_register_histograms,  sj_register_diffs,    sj_register_histogram_table,
        sj_register_percentiles, sj_register_demangle,
    };
    sj_query_state *state = sqlite3_malloc(sizeof(*state));
    if (state == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the query functions");
    }
    memset(state, 0, sizeof(*state));
    state->database = database;
    sj_query_state_hold(state);
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof(registrations) / sizeof(registrations[0]); ++i) {
        result = registrations[i](state);
        if (result != SQLITE_OK) {
            break;
        }
    }
    sj_query_state_release(state);
    if (result != SQLITE_OK) {
        return sj_fail(error, result == SQLITE_NOMEM ? SJ_ENOMEM : SJ_EIO,
                       "cannot register the query functions: %s", sqlite3_errmsg(database));
    }
    return SJ_OK;
}
