#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"

typedef struct audit_options {
    sj_query_options query;
    int64_t limit;
} audit_options;

static const char data_sql[] =
    "SELECT audit_id, realtime_ns, who, peer, action, outcome, object FROM audit"
    " ORDER BY audit_id DESC LIMIT ?1";

static const char table_sql[] =
    "SELECT audit_id AS id, datetime(realtime_ns / 1000000000, 'unixepoch') AS time, who, peer,"
    " action, outcome, object FROM audit ORDER BY audit_id DESC LIMIT ?1";

static int run_audit(int argc, char **argv)
{
    static const char *const hidden_first[] = {"id", "peer", NULL};
    audit_options options = {.query.hidden_first = hidden_first, .limit = 200};
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int first = 0;
    const int code = sj_options_parse(&sj_command_audit, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const int file_code =
        sj_query_parse_file(&sj_command_audit, argc, argv, first, &options.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    int exit_code = sj_query_open(&sj_command_audit, &options.query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const char *sql = sj_query_wants_data(&options.query) ? data_sql : table_sql;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, options.limit);
        exit_code = sj_query_print(&sj_command_audit, &options.query, statement);
    } else {
        exit_code =
            sj_command_error(&sj_command_audit, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    }
    sqlite3_close(database);
    return exit_code;
}

static const sj_option audit_table[] = {SJ_DATABASE_OPTION(offsetof(audit_options, query.file)),
                                        {.name = "limit",
                                         .argument = "N",
                                         .kind = SJ_ARG_NUMBER,
                                         .offset = offsetof(audit_options, limit),
                                         .least = 1,
                                         .most = 1000000,
                                         .letter = 'n',
                                         .help = "the newest N rows (default 200)"},
                                        SJ_QUERY_FORMAT_OPTIONS(offsetof(audit_options, query)),
                                        {0}};

const sj_command sj_command_audit = {
    .name = "audit",
    .summary = "show who did what with a collector",
    .usage = "sojourn audit [OPTIONS] [FILE]",
    .help =
        "Prints the rows of the table audit, newest first: commands, policies, tokens, imports,\n"
        "changes and removals of sessions, and SQL, each with its time, the token or user,\n"
        "the client's address and the outcome. Rows are kept for ever, except those about SQL:\n"
        "they are removed when there are 100,000 newer rows.\n",
    .options = audit_table,
    .examples = "Examples:\n"
                "  sojourn audit lab.db\n"
                "  sojourn audit --json --limit 20 lab.db\n",
    .run = run_audit,
};
