#include "collector-server/cli/cluster_options.h"
#include "collector-server/cli/cluster_sql.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/sql_shell.h"
#include "collector-server/cli/statement_runner.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_MS = 300 * 1000 };

typedef struct sql_request {
    sj_query_options options;
    sj_statement_runner runner;
    sj_sql_limits limits;
    const char *query; /* name of a shipped query */
    const char *show;
    const char *schema; /* table to describe; "": all tables; NULL: --schema is not given */
    bool list;
    sj_forward_options cluster; /* its url is NULL if the query is for a database */
} sql_request;

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* True if an argument looks like the name of a file: a single word that contains a slash or a dot.
 * A word that begins with a dot and has no slash is a command of the shell. */
static bool is_meant_as_file(const char *text)
{
    return strpbrk(text, " \t\n;(") == NULL &&
           (strchr(text, '/') != NULL || (text[0] != '.' && strchr(text, '.') != NULL));
}

/* Runs the shipped query of --query on a database. Without --query, runs the statement `sql`. If
 * `sql` is NULL, too, runs the shell. */
static int run_statement(sql_request *request, sqlite3 *database, const char *sql)
{
    sj_statement_runner *runner = &request->runner;
    int exit_code = sj_statement_runner_init(runner, &sj_command_sql, database, &request->options,
                                             &request->limits);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    runner->progress = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    runner->pages = request->query != NULL || sql != NULL;
    if (request->query != NULL) {
        exit_code = sj_statement_runner_run_query(runner, request->query, 0);
    } else if (sql != NULL) {
        exit_code = sj_statement_runner_run(runner, sql);
    } else {
        exit_code = sj_sql_shell(runner, &request->options);
    }
    sj_statement_runner_deinit(runner);
    return exit_code;
}

static int run_on_cluster(sql_request *request, int count, char **arguments)
{
    sj_cluster_sql cluster = {
        .command = &sj_command_sql,
        .cluster = request->cluster,
        .options = &request->options,
        .parameters = request->runner.parameters,
        .parameter_count = request->runner.parameter_count,
        .limits = {.rows = request->limits.max_rows, .time_ms = request->limits.time_ms}};
    if (request->list) {
        sj_cluster_sql_list();
        return SJ_EXIT_OK;
    }
    if (count != (request->query != NULL ? 0 : 1)) {
        return sj_command_usage_error(&sj_command_sql, "with --cluster give one query, no FILE");
    }
    return sj_cluster_sql_run(&cluster, count == 1 ? arguments[0] : NULL, request->query);
}

/* Prints what --queries, --show or --schema requests, through the pager. */
static int describe(const sql_request *request)
{
    sj_terminal terminal;
    int exit_code = SJ_EXIT_OK;
    sj_terminal_open(&terminal);
    sj_terminal_page(&terminal);
    if (request->list) {
        sj_statement_runner_list_queries();
    } else if (request->show != NULL) {
        exit_code = sj_statement_runner_describe_query(&sj_command_sql, request->show);
    } else {
        exit_code = sj_statement_runner_print_schema(
            &sj_command_sql, request->schema[0] != '\0' ? request->schema : NULL);
    }
    return sj_terminal_close(&terminal) || exit_code != SJ_EXIT_OK
               ? exit_code
               : sj_command_error(&sj_command_sql, SJ_EXIT_FAILED, "cannot write the result");
}

static int run_request(sql_request *request, int count, char **arguments)
{
    const char *sql = NULL;
    if (request->cluster.url != NULL) {
        return run_on_cluster(request, count, arguments);
    }
    if (request->list || request->show != NULL || request->schema != NULL) {
        return describe(request);
    }
    if (count > 0 && request->query == NULL && !is_file(arguments[0]) &&
        !is_meant_as_file(arguments[0])) {
        sql = arguments[0];
        ++arguments;
        --count;
    }
    const int taken =
        sj_query_parse_file(&sj_command_sql, count, arguments, 0, &request->options.file);
    if (taken >= 0) {
        return taken;
    }
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_sql, &request->options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = run_statement(request, database, sql);
        sqlite3_close(database);
    }
    return exit_code;
}

static sj_status parse_parameter(const sj_option *option, void *values, const char *text,
                                 sj_error *error)
{
    (void)option;
    sj_statement_runner *runner = &((sql_request *)values)->runner;
    if (strchr(text, '=') == NULL || runner->parameter_count == SJ_STATEMENT_RUNNER_PARAMETERS) {
        return sj_fail(error, SJ_EINVAL, "--param needs NAME=VALUE, %d times at most, not \"%s\"",
                       (int)SJ_STATEMENT_RUNNER_PARAMETERS, text);
    }
    runner->parameters[runner->parameter_count++] = text;
    return SJ_OK;
}

static int run_sql(int argc, char **argv)
{
    sql_request request = {.limits.time_ms = DEFAULT_TIMEOUT_MS};
    int first = 0;
    const int code = sj_options_parse(&sj_command_sql, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    return run_request(&request, argc - first, argv + first);
}

static const sj_option sql_options[] = {
    SJ_DATABASE_OPTION(offsetof(sql_request, options.file)),
    {.name = "query",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sql_request, query),
     .help = "run a query that Sojourn ships"},
    {.name = "queries",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sql_request, list),
     .help = "list them"},
    {.name = "show",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sql_request, show),
     .help = "print one"},
    {.name = "param",
     .argument = "NAME=VALUE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_parameter,
     .help = "value of :NAME in the query (repeatable)"},
    SJ_QUERY_SESSION_OPTION(offsetof(sql_request, options)),
    {.name = "schema",
     .argument = "TABLE",
     .is_optional = true,
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sql_request, schema),
     .help = "describe tables and columns with their units"},
    {.name = "limit",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(sql_request, limits.max_rows),
     .least = 1,
     .most = INT32_MAX,
     .help = "stop after N rows"},
    {.name = "timeout",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sql_request, limits.time_ms),
     .least = 1,
     .most = INT32_MAX,
     .help = "stop after this time (default 5m)"},
    {.name = "timing",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sql_request, runner.timing),
     .help = "print how long it took"},
    {.name = "cluster",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sql_request, cluster.url),
     .help = "ask a ClickHouse cluster of many labs, in its SQL"},
    SJ_CLUSTER_OPTIONS(offsetof(sql_request, cluster)),
    SJ_QUERY_FORMAT_OPTIONS(offsetof(sql_request, options)),
    {0}};

const sj_command sj_command_sql = {
    .name = "sql",
    .summary = "ask a database in SQL, down to single calls",
    .usage = "sojourn sql [OPTIONS] [QUERY] [FILE]",
    .help =
        "Runs one reading query; without QUERY a shell with history and completion, or the\n"
        "statements of standard input. Tables: sessions, functions, function_stats, call_paths,\n"
        "...; calls (every call), call_aggregate(session_id, from_ns, to_ns),\n"
        "call_groups('session,function,...'),\n"
        "descendants(call_id), ancestors(call_id), siblings(call_id), sequence(call_id, call_id),\n"
        "contains(session_id, f, g [, from_ns, to_ns]), intervals_intersect(session_id, f, g),\n"
        "concurrency(session_id, f [, since_ns, until_ns]),\n"
        "call_tree(session_id), flame(session_id), open_paths(session_id), open_now(session_id),\n"
        "open_before(session_id),\n"
        "physical_tree(session_id), session_set(sessions), diff_functions(a, b), diff_tree(a, b).\n"
        "Ctrl-C stops a query.\n",
    .options = sql_options,
    .examples =
        "Examples:\n"
        "  sojourn sql \"SELECT * FROM calls ORDER BY duration_ns DESC LIMIT 10\"\n"
        "  sojourn sql --json \"SELECT name, calls FROM function_stats NATURAL JOIN functions\"\n"
        "  sojourn sql --query callers_of --param function='parse_*' lab.db\n",
    .run = run_sql,
};
