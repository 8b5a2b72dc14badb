#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/session_doubts.h"
#include "schema/queries/cli/sessions.h"

#include <stdio.h>

/* Prints a note for each session whose recorder no longer runs although its state is "recording",
 * and for each session of which parts of the program were not recorded. */
static sj_status report_doubt(void *database, sqlite3_stmt *row)
{
    sj_session_doubts doubts;
    const int64_t session_id = sqlite3_column_int64(row, 0);
    sj_session_doubts_read(database, session_id, &doubts);
    if (doubts.is_abandoned) {
        fprintf(stderr, "sojourn sessions: note: session %lld %s\n", (long long)session_id,
                SJ_ABANDONED_NEXT);
    }
    if (doubts.not_recorded[0] != '\0') {
        fprintf(stderr, "sojourn sessions: note: of session %lld, %s\n", (long long)session_id,
                doubts.not_recorded);
    }
    return SJ_OK;
}

static int report_doubts(sqlite3 *database)
{
    static const char doubtful_sql[] =
        "SELECT session_id FROM sessions AS s WHERE state = 'recording' OR EXISTS (SELECT 1 FROM "
        "reports AS r WHERE r.session_id = s.session_id AND r.monitor = 'recorder' "
        "AND r.kind = 'not_recorded')";
    return sj_query_each(&sj_command_sessions, database, doubtful_sql, (sj_sql_binds){0},
                         report_doubt, database);
}

static int print_sessions(const sj_query_options *options)
{
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_sessions, options, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    sqlite3_stmt *statement;
    const char *sql = sj_query_wants_data(options) ? sj_sessions_data_sql : sj_sessions_table_sql;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_sessions, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        exit_code = sj_query_print(&sj_command_sessions, options, statement);
    }
    const int doubts_code = report_doubts(database);
    sqlite3_close(database);
    return exit_code != SJ_EXIT_OK ? exit_code : doubts_code;
}

static int run_sessions(int argc, char **argv)
{
    static const char *const hidden_first[] = {
        "bytes", "lost_events", "folded", "device", "uuid", "started_utc", "lost", "state", NULL};
    sj_query_options options = {.hidden_first = hidden_first};
    int first = 0;
    const int code = sj_options_parse(&sj_command_sessions, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const int file_code =
        sj_query_parse_file(&sj_command_sessions, argc, argv, first, &options.file);
    if (file_code >= 0) {
        return file_code;
    }
    return print_sessions(&options);
}

static const sj_option sessions_options[] = {
    SJ_DATABASE_OPTION(offsetof(sj_query_options, file)), SJ_QUERY_FORMAT_OPTIONS(0), {0}};

const sj_command sj_command_sessions = {
    .name = "sessions",
    .summary = "list the sessions of a database, newest first",
    .usage = "sojourn sessions [OPTIONS] [FILE]",
    .options = sessions_options,
    .examples = "Examples:\n"
                "  sojourn sessions\n"
                "  sojourn sessions --json lab.db\n",
    .run = run_sessions,
};
