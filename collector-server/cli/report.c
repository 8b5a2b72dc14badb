#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"

#include <getopt.h>
#include <string.h>

typedef struct sort_key {
    const char *name;
    const char *column;
} sort_key;

static const char *sort_column(const char *name)
{
    static const sort_key keys[] = {
        {"calls", "s.calls"}, {"total", "s.total_ns"}, {"self", "s.self_ns"}, {"mean", "p.mean"},
        {"min", "s.min_ns"},  {"max", "s.max_ns"},     {"p50", "p.p50"},      {"p95", "p.p95"},
        {"p99", "p.p99"},     {"name", "f.name"},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        if (strcmp(keys[i].name, name) == 0) {
            return keys[i].column;
        }
    }
    return NULL;
}

static int print_report(const sj_query_options *options, const char *column, int64_t limit)
{
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_report, options, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    /* names of columns carry their unit for programs; tables give durations as people read them */
    const bool table = options->format == SJ_RESULT_TABLE || options->format == SJ_RESULT_MARKDOWN;
    const char *wrap = table ? "format_duration" : "";
    const char *unit = table ? "" : "_ns";
    char *sql = sqlite3_mprintf(
        "SELECT s.calls, %s(s.total_ns) AS total%s, %s(s.self_ns) AS self%s, "
        "%s(s.min_ns) AS min%s, %s(s.max_ns) AS max%s, "
        "%s(p.mean) AS mean%s, %s(p.p50) AS p50%s, %s(p.p95) AS p95%s, %s(p.p99) AS p99%s, "
        "s.untrusted, coalesce(f.name, '(function ' || s.function_id || ')') AS function "
        "FROM function_stats AS s LEFT JOIN functions AS f ON f.function_id = s.function_id "
        "JOIN (SELECT function_id, total_ns / nullif(calls, 0) AS mean, "
        "histogram_quantile(histogram, 0.5, session_id) AS p50, "
        "histogram_quantile(histogram, 0.95, session_id) AS p95, "
        "histogram_quantile(histogram, 0.99, session_id) AS p99 FROM function_stats "
        "WHERE session_id = ?1) AS p ON p.function_id = s.function_id WHERE s.session_id = ?1 "
        "ORDER BY %s, s.function_id LIMIT ?2",
        wrap, unit, wrap, unit, wrap, unit, wrap, unit, wrap, unit, wrap, unit, wrap, unit, wrap,
        unit, column);
    sqlite3_stmt *statement = NULL;
    if (sql == NULL || sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_report, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_int64(statement, 1, session_id);
        sqlite3_bind_int64(statement, 2, limit);
        exit_code = sj_query_print(&sj_command_report, options, statement);
    }
    sqlite3_free(sql);
    sqlite3_close(database);
    return exit_code;
}

enum { OPTION_SORT = 1, OPTION_LIMIT, OPTION_HELP };

static int run_report(int argc, char **argv)
{
    static const struct option long_options[] = {SJ_QUERY_OPTIONS,
                                                 {"sort", required_argument, NULL, OPTION_SORT},
                                                 {"limit", required_argument, NULL, OPTION_LIMIT},
                                                 {"help", no_argument, NULL, OPTION_HELP},
                                                 {NULL, 0, NULL, 0}};
    sj_query_options options = {0};
    const char *sort = "total";
    int64_t limit = -1;
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (sj_query_common_option(&options, option, optarg)) {
            continue;
        }
        if (option == OPTION_HELP) {
            return sj_command_help(&sj_command_report);
        }
        if (option == OPTION_SORT) {
            sort = optarg;
        } else if (option != OPTION_LIMIT) {
            return sj_command_usage_error(
                &sj_command_report, option == ':' ? "%s needs a value" : "there is no option %s",
                argv[optind - 1]);
        } else if (!sj_query_number(optarg, 1, &limit)) {
            return sj_command_usage_error(&sj_command_report, "--limit takes a number, not '%s'",
                                          optarg);
        }
    }
    const char *column = sort_column(sort);
    if (column == NULL) {
        return sj_command_usage_error(
            &sj_command_report,
            "--sort takes calls, total, self, mean, min, max, p50, p95, p99 or name, not '%s'",
            sort);
    }
    if (argc - optind > 1) {
        return sj_command_usage_error(&sj_command_report, "one FILE at most");
    }
    options.file = argv[optind];
    char order[64];
    snprintf(order, sizeof(order), "%s %s", column, strcmp(sort, "name") == 0 ? "ASC" : "DESC");
    return print_report(&options, order, limit);
}

const sj_command sj_command_report = {
    .name = "report",
    .summary = "show how often each function was called and how long it took",
    .usage = "sojourn report [OPTIONS] [FILE]",
    .help =
        "Without FILE: $SOJOURN_DATABASE, else the newest sojourn-*.db here.\n\n"
        "Options:\n"
        "  --session ID      a session_id, the beginning of a uuid, or `last` (default)\n"
        "  --sort KEY        calls, total (default), self, mean, min, max, p50, p95, p99, name\n"
        "  --limit N         only the first N functions\n"
        "  --wide            do not cut long names\n"
        "  --json, --csv, --markdown\n"
        "                    another format than a table; JSON and CSV give nanoseconds\n"
        "  --help            this text\n\n"
        "Examples:\n"
        "  sojourn report --sort self --limit 20\n"
        "  sojourn report --session last --csv lab.db > functions.csv\n",
    .run = run_report,
};
