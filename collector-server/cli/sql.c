#include "collector-server/cli/asker.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/sql_shell.h"

#include <getopt.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPTION_LIMIT = 1,
    OPTION_TIMEOUT,
    OPTION_QUERY,
    OPTION_QUERIES,
    OPTION_SHOW,
    OPTION_PARAM,
    OPTION_SCHEMA,
    OPTION_TIMING,
    OPTION_HELP,
    DEFAULT_TIMEOUT_S = 300
};

typedef struct sql_request {
    sj_query_options options;
    sj_asker asker;
    sj_sql_limits limits;
    int64_t timeout_s;
    const char *query; /* shipped */
    const char *show;
    const char *schema; /* a table, "" for all; NULL: not asked for */
    bool list;
} sql_request;

static bool take_number(const char *text, int64_t *number)
{
    return sj_query_number(text, 1, number) && *number <= INT32_MAX;
}

static bool take_option(sql_request *request, int option)
{
    switch (option) {
    case OPTION_LIMIT:
        return take_number(optarg, &request->limits.max_rows);
    case OPTION_TIMEOUT:
        return take_number(optarg, &request->timeout_s);
    case OPTION_QUERY:
        request->query = optarg;
        return true;
    case OPTION_SHOW:
        request->show = optarg;
        return true;
    case OPTION_QUERIES:
        request->list = true;
        return true;
    case OPTION_SCHEMA:
        request->schema = optarg != NULL ? optarg : "";
        return true;
    case OPTION_TIMING:
        request->asker.timing = true;
        return true;
    case OPTION_PARAM:
        if (strchr(optarg, '=') == NULL || request->asker.parameter_count == SJ_ASKER_PARAMETERS) {
            return false;
        }
        request->asker.parameters[request->asker.parameter_count++] = optarg;
        return true;
    default:
        return sj_query_common_option(&request->options, option, optarg);
    }
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Runs what was asked for on an open database; `sql` NULL: a shipped query, or the shell. */
static int ask(sql_request *request, sqlite3 *database, const char *sql)
{
    sj_asker *asker = &request->asker;
    request->limits.time_ms = request->timeout_s * 1000;
    int exit_code = sj_asker_init(asker, database, &request->options, &request->limits);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    asker->progress = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    if (request->query != NULL) {
        exit_code = sj_asker_run_query(asker, request->query);
    } else if (sql != NULL) {
        exit_code = sj_asker_run(asker, sql);
    } else {
        exit_code = sj_sql_shell(asker, &request->options);
    }
    sj_asker_deinit(asker);
    return exit_code;
}

static int run_request(sql_request *request, int count, char **arguments)
{
    const char *sql = NULL;
    if (request->list) {
        sj_asker_list_queries();
        return SJ_EXIT_OK;
    }
    if (request->show != NULL) {
        return sj_asker_describe_query(request->show);
    }
    if (request->schema != NULL) {
        return sj_asker_print_schema(request->schema[0] != '\0' ? request->schema : NULL);
    }
    if (count > 0 && request->query == NULL && !is_file(arguments[0])) {
        sql = arguments[0];
        ++arguments;
        --count;
    }
    if (count > 1) {
        return sj_command_usage_error(&sj_command_sql, "give one query, and one FILE at most");
    }
    request->options.file = count == 1 ? arguments[0] : NULL;
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_sql, &request->options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = ask(request, database, sql);
        sqlite3_close(database);
    }
    return exit_code;
}

static int run_sql(int argc, char **argv)
{
    static const struct option long_options[] = {
        SJ_QUERY_OPTIONS,
        {"limit", required_argument, NULL, OPTION_LIMIT},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"query", required_argument, NULL, OPTION_QUERY},
        {"queries", no_argument, NULL, OPTION_QUERIES},
        {"show", required_argument, NULL, OPTION_SHOW},
        {"param", required_argument, NULL, OPTION_PARAM},
        {"schema", optional_argument, NULL, OPTION_SCHEMA},
        {"timing", no_argument, NULL, OPTION_TIMING},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0}};
    sql_request request = {.timeout_s = DEFAULT_TIMEOUT_S};
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            return sj_command_help(&sj_command_sql);
        }
        if (!take_option(&request, option)) {
            return sj_command_usage_error(&sj_command_sql, "cannot understand %s",
                                          argv[optind - 1]);
        }
    }
    return run_request(&request, argc - optind, argv + optind);
}

const sj_command sj_command_sql = {
    .name = "sql",
    .summary = "ask a database in SQL, down to single calls",
    .usage = "sojourn sql [OPTIONS] [QUERY] [FILE]",
    .help =
        "Runs one reading query; without QUERY a shell with history and completion, or the\n"
        "statements of standard input. Tables: sessions, functions, function_stats, call_paths,\n"
        "...; calls (every call), call_aggregate(session_id, from_ns, to_ns),\n"
        "descendants(call_id), ancestors(call_id), call_tree(session_id), flame(session_id),\n"
        "diff_functions(a, b), diff_tree(a, b). Ctrl-C stops a query.\n\n"
        "Options:\n"
        "  --query NAME      run a question that is shipped\n"
        "  --queries         list them\n"
        "  --show NAME       print one\n"
        "  --param NAME=VALUE\n"
        "                    value of :NAME in the query (repeatable)\n"
        "  --session ID      session that :session means (default last)\n"
        "  --schema[=TABLE]  describe tables and columns with their units\n"
        "  --limit N         stop after N rows\n"
        "  --timeout SECONDS stop after this time (default 300)\n"
        "  --timing          tell how long it took\n"
        "  --wide            do not cut long values\n"
        "  --json, --csv, --markdown\n"
        "                    another format than a table\n"
        "  --help            this text\n\n"
        "Examples:\n"
        "  sojourn sql \"SELECT * FROM calls ORDER BY duration_ns DESC LIMIT 10\"\n"
        "  sojourn sql --json \"SELECT name, calls FROM function_stats NATURAL JOIN functions\"\n"
        "  sojourn sql --query callers_of --param function='parse_*' lab.db\n",
    .run = run_sql,
};
