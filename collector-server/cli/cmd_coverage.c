/* `sojourn coverage` compares sets of sessions by the functions that they entered. All its
 * statements query the table function coverage(), so its figures are those of `report
 * --coverage`. */
#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/report_coverage.h"
#include "schema/queries/cli/coverage.h"

#include <stddef.h>

typedef struct coverage_request {
    sj_query_options query;
    sj_report_coverage coverage;
    const char *beyond;   /* a set: only functions that its sessions did not enter */
    const char *reaching; /* a pattern of function names */
    bool never;           /* only functions that no session entered */
} coverage_request;

typedef struct coverage_question {
    const char *sql; /* ?1: the set of sessions, ?2: `second` */
    const char *second;
} coverage_question;

/* Returns the question that the options ask, or one without SQL for the plain table. */
static coverage_question choose_question(const coverage_request *request)
{
    if (request->never) {
        return (coverage_question){.sql = sj_coverage_never_sql};
    }
    if (request->beyond != NULL) {
        return (coverage_question){.sql = sj_coverage_beyond_sql, .second = request->beyond};
    }
    if (request->reaching != NULL) {
        return (coverage_question){.sql = sj_coverage_reaching_sql, .second = request->reaching};
    }
    return (coverage_question){0};
}

static int ask(coverage_request *request, const coverage_question *question)
{
    sqlite3 *database;
    sqlite3_stmt *row = NULL;
    const char *set = request->coverage.sessions != NULL ? request->coverage.sessions : "all";
    int code = sj_query_open(&sj_command_coverage, &request->query, &database, NULL);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    if (sqlite3_prepare_v2(database, question->sql, -1, &row, NULL) != SQLITE_OK) {
        code =
            sj_command_error(&sj_command_coverage, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_text(row, 1, set, -1, SQLITE_STATIC);
        if (question->second != NULL) {
            sqlite3_bind_text(row, 2, question->second, -1, SQLITE_STATIC);
        }
        code = sj_query_print(&sj_command_coverage, &request->query, row);
    }
    sqlite3_close(database);
    return code;
}

static int run_coverage(int argc, char **argv)
{
    coverage_request request = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_coverage, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    const int file_code =
        sj_query_parse_file(&sj_command_coverage, argc, argv, first, &request.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    const int questions = (request.never ? 1 : 0) + (request.beyond != NULL ? 1 : 0) +
                          (request.reaching != NULL ? 1 : 0) +
                          (request.coverage.by != NULL ? 1 : 0);
    if (questions > 1) {
        return sj_command_usage_error(&sj_command_coverage,
                                      "--by, --beyond, --reaching and --never exclude each other");
    }
    const coverage_question question = choose_question(&request);
    if (question.sql == NULL) {
        request.coverage.sessions =
            request.coverage.sessions != NULL ? request.coverage.sessions : "all";
        return sj_report_coverage_run(&request.coverage, &request.query);
    }
    return ask(&request, &question);
}

static const sj_option coverage_table[] = {
    SJ_DATABASE_OPTION(offsetof(coverage_request, query.file)),
    {.name = "over",
     .argument = "SET",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(coverage_request, coverage.sessions),
     .help = "merge these sessions (default: all), such as 7, last:5, tag:KEY=VALUE, mark:NAME"},
    {.name = "by",
     .argument = "WHAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(coverage_request, coverage.by),
     .help = "share of functions entered, by module (default), namespace, class, function\n"
             "or mark; share of lines that ran (record --lines), by file or line"},
    {.name = "beyond",
     .argument = "SET",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(coverage_request, beyond),
     .help = "list functions that these sessions entered and the sessions of SET did not"},
    {.name = "reaching",
     .argument = "GLOB",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(coverage_request, reaching),
     .help = "list the sessions that entered functions of these names"},
    {.name = "never",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(coverage_request, never),
     .help = "list watched functions that no session entered"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(coverage_request, query)),
    {0}};

const sj_command sj_command_coverage = {
    .name = "coverage",
    .summary = "show which functions sessions entered, added or never entered",
    .usage = "sojourn coverage [OPTIONS] [FILE]",
    .help = "Without --by, --beyond, --reaching and --never: the share of functions entered, by\n"
            "module. Functions of different builds are matched by name. `sojourn export --format\n"
            "lcov` writes the coverage of one session for genhtml.\n",
    .options = coverage_table,
    .examples = "Examples:\n"
                "  sojourn coverage --over tag:suite=nightly lab.db\n"
                "  sojourn coverage --over 7 --beyond tag:suite=nightly lab.db\n"
                "  sojourn coverage --reaching 'parse_*' lab.db\n"
                "  sojourn coverage --never --json lab.db\n",
    .run = run_coverage,
};
