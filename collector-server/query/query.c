#include "collector-server/query/query.h"

#include "collector-server/query/query_state.h"

#include <string.h>

char *sj_query_read_warnings(sqlite3 *database)
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

sj_status sj_query_register(sqlite3 *database, struct sj_sums_cache *sums, sj_error *error)
{
    static int (*const registrations[])(sj_query_state *) = {
        sj_register_warnings,        sj_register_calls,       sj_register_call_aggregate,
        sj_register_lineage,         sj_register_ancestors,   sj_register_trees,
        sj_register_durations,       sj_register_histograms,  sj_register_diffs,
        sj_register_histogram_table, sj_register_percentiles, sj_register_demangle,
        sj_register_coverage,        sj_register_statements,  sj_register_overlaps,
        sj_register_call_groups,     sj_register_concurrency, sj_register_session_set,
        sj_register_open_paths,      sj_register_open_now,
    };
    sj_query_state *state = sqlite3_malloc(sizeof(*state));
    if (state == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the query functions");
    }
    memset(state, 0, sizeof(*state));
    state->database = database;
    state->sums = sums;
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
