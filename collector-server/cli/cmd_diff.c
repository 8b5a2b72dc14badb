#include "collector-server/cli/clock_mix.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/needed_sessions.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/query/compare.h"
#include "proto/base/units.h"
#include "schema/queries/cli/diff.h"

#include <math.h>
#include <string.h>

typedef struct diff_request {
    sj_query_options options;
    const char *a;
    const char *b;
    const char *by; /* the compared quantity, as sj_compare_of_find names it */
    bool tree;
    bool all;
    bool exit_code;
    int64_t limit;
} diff_request;

enum { WRAPPED_INDENT = 2 };

/* Columns of the statement for the whole comparison. */
enum {
    WHOLE_VERDICT,
    WHOLE_RATIO,
    WHOLE_LOW,
    WHOLE_HIGH,
    WHOLE_P,
    WHOLE_SESSIONS_A,
    WHOLE_SESSIONS_B,
    WHOLE_NEEDED,
    WHOLE_NEEDED_BY_FUNCTIONS,
    WHOLE_UNDECIDED, /* number of functions */
    WHOLE_DIFFERS,
    WHOLE_MATCHES_NONE,
    WHOLE_MODULE_A,
    WHOLE_MODULE_B,
    WHOLE_MATCHED,
    WHOLE_IS_COMPARABLE
};

/* Prints how many sessions to record, if a side has too few or functions are undecided. */
static void print_needed(sqlite3_stmt *summary_row, const sj_terminal *terminal)
{
    const int a = sqlite3_column_int(summary_row, WHOLE_SESSIONS_A);
    const int b = sqlite3_column_int(summary_row, WHOLE_SESSIONS_B);
    const int smaller_count = a < b ? a : b;
    const int undecided = sqlite3_column_int(summary_row, WHOLE_UNDECIDED);
    const int needed = sqlite3_column_int(summary_row, WHOLE_NEEDED_BY_FUNCTIONS);
    const size_t advice = sj_needed_sessions_advice((size_t)needed);
    char text[SJ_NEEDED_SESSIONS_BYTES];
    char line[SJ_NEEDED_SESSIONS_BYTES + 2] = "";
    if (smaller_count < sqlite3_column_int(summary_row, WHOLE_NEEDED)) {
        snprintf(line, sizeof(line),
                 "Too few sessions (%d and %d). Record %zu a side: sojourn bench -n %zu.\n", a, b,
                 advice, advice);
    } else if (undecided != 0) {
        snprintf(line, sizeof(line), "%s.\n",
                 sj_needed_sessions_text((size_t)smaller_count, (size_t)needed, (size_t)undecided,
                                         text));
    }
    sj_terminal_wrap(stdout, terminal, line, WRAPPED_INDENT);
}

/* Prints how much of the time of functions without names was matched, if that is known. */
static void print_matched(sqlite3_stmt *summary_row, const sj_terminal *terminal)
{
    char line[SJ_NEEDED_SESSIONS_BYTES];
    if (sqlite3_column_type(summary_row, WHOLE_MATCHED) != SQLITE_NULL) {
        snprintf(line, sizeof(line),
                 "Functions without names: %.0f %% of their time was matched by their code.\n",
                 sqlite3_column_double(summary_row, WHOLE_MATCHED) * 100);
        sj_terminal_wrap(stdout, terminal, line, WRAPPED_INDENT);
    }
}

static void print_summary(sqlite3_stmt *summary_row, const diff_request *request)
{
    const char *verdict = (const char *)sqlite3_column_text(summary_row, WHOLE_VERDICT);
    const double ratio = sqlite3_column_double(summary_row, WHOLE_RATIO);
    printf("A: %s (%s)  B: %s (%s)\n", request->a,
           SJ_COUNTED(sqlite3_column_int(summary_row, WHOLE_SESSIONS_A), "session"), request->b,
           SJ_COUNTED(sqlite3_column_int(summary_row, WHOLE_SESSIONS_B), "session"));
    static const char *const what[] = {[SJ_COMPARE_TIME] = "Everything",
                                       [SJ_COMPARE_CPU] = "CPU time of measured calls",
                                       [SJ_COMPARE_ALLOCATED] = "Bytes of measured calls"};
    printf("%s: ", what[sj_compare_of_find(request->by)]);
    if (ratio > 0) {
        printf("%+.1f %%, p = %.2g: ", (ratio - 1) * 100,
               sqlite3_column_double(summary_row, WHOLE_P));
    }
    puts(verdict);
    if (sqlite3_column_type(summary_row, WHOLE_LOW) != SQLITE_NULL) {
        printf("95 %% CI: %+.1f to %+.1f %%\n",
               (sqlite3_column_double(summary_row, WHOLE_LOW) - 1) * 100,
               (sqlite3_column_double(summary_row, WHOLE_HIGH) - 1) * 100);
    }
    print_needed(summary_row, request->options.terminal);
    print_matched(summary_row, request->options.terminal);
    putchar('\n');
}

/* Returns the SQL columns of the compared cost, NULL if the comparison is about time. */
static const char *cost_columns(const diff_request *request)
{
    switch (sj_compare_of_find(request->by)) {
    case SJ_COMPARE_CPU:
        return "format_duration(cost_a) AS cpu_a, format_duration(cost_b) AS cpu_b";
    case SJ_COMPARE_ALLOCATED:
        return "format_bytes(cost_a) AS bytes_a, format_bytes(cost_b) AS bytes_b";
    default:
        return NULL;
    }
}

/* Returns the SQL columns of the compared quantity for a table of functions. */
static const char *compared_columns(const diff_request *request)
{
    const char *costs = cost_columns(request);
    return costs != NULL ? costs
                         : "format_duration(compared_a) AS self_a, format_duration(compared_b) AS "
                           "self_b, decided_by";
}

/* Returns the SQL columns of the compared quantity for call paths. */
static const char *compared_tree_columns(const diff_request *request)
{
    const char *costs = cost_columns(request);
    return costs != NULL
               ? costs
               : "format_duration(total_ns_a) AS total_a, format_duration(total_ns_b) AS total_b, "
                 "format_duration(compared_b - compared_a) AS self_change";
}

static char *make_rows_sql(const diff_request *request)
{
    const sj_result_format format = request->options.format;
    const char *table = request->tree ? "diff_tree" : "diff_functions";
    if (format == SJ_RESULT_JSON || format == SJ_RESULT_CSV) {
        return sqlite3_mprintf("SELECT * FROM %s(?1, ?2, ?4) ORDER BY row LIMIT ?3", table);
    }
    const char *row_filter = request->all ? ""
                                          : "AND (verdict NOT IN ('same', 'minor') OR "
                                            "calls_change IN ('more', 'fewer'))";
    if (request->tree) {
        return sqlite3_mprintf(sj_diff_tree_rows_sql, compared_tree_columns(request), row_filter);
    }
    return sqlite3_mprintf(sj_diff_function_rows_sql, compared_columns(request), row_filter);
}

static int prepare_diff(sqlite3 *database, const char *sql, const diff_request *request,
                        sqlite3_stmt **statement)
{
    if (sql == NULL || sqlite3_prepare_v2(database, sql, -1, statement, NULL) != SQLITE_OK) {
        return sj_command_error(&sj_command_diff, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    }
    sqlite3_bind_text(*statement, 1, request->a, -1, SQLITE_STATIC);
    sqlite3_bind_text(*statement, 2, request->b, -1, SQLITE_STATIC);
    sqlite3_bind_text(*statement, 4, request->by, -1, SQLITE_STATIC);
    return SJ_EXIT_OK;
}

/* Prints why the two sets have no function in common, if the modules of both are known. */
static void print_unmatched(sqlite3_stmt *summary_row)
{
    const char *a = (const char *)sqlite3_column_text(summary_row, WHOLE_MODULE_A);
    const char *b = (const char *)sqlite3_column_text(summary_row, WHOLE_MODULE_B);
    char clean[2][SJ_FUNCTION_NAME_BYTES];
    if (a != NULL && b != NULL) {
        fprintf(stderr,
                "sojourn diff: note: no function is in both sets: they are matched by the file "
                "name of their module and their name, and modules are %s and %s; builds of a "
                "program can be compared where its file has one name, as old/app and new/app\n",
                sj_function_name_fit(a, 0, clean[0]), sj_function_name_fit(b, 0, clean[1]));
    }
}

static int print_diff(sqlite3 *database, const diff_request *request)
{
    sqlite3_stmt *statement = NULL;
    int exit_code = prepare_diff(database, sj_diff_whole_sql, request, &statement);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    if (sqlite3_step(statement) != SQLITE_ROW) {
        exit_code =
            sj_command_error(&sj_command_diff, SJ_EXIT_NOT_FOUND, "%s", sqlite3_errmsg(database));
        sqlite3_finalize(statement);
        return exit_code;
    }
    const bool differs = sqlite3_column_int64(statement, WHOLE_DIFFERS) != 0;
    if (sqlite3_column_int(statement, WHOLE_MATCHES_NONE) != 0) {
        print_unmatched(statement);
    }
    const bool is_comparable = sqlite3_column_int(statement, WHOLE_IS_COMPARABLE) != 0;
    const bool table =
        request->options.format == SJ_RESULT_TABLE || request->options.format == SJ_RESULT_MARKDOWN;
    if (table) {
        sj_terminal_page(request->options.terminal);
        print_summary(statement, request);
    }
    sqlite3_finalize(statement);
    char *sql = make_rows_sql(request);
    exit_code = prepare_diff(database, sql, request, &statement);
    sqlite3_free(sql);
    if (exit_code == SJ_EXIT_OK) {
        sqlite3_bind_int64(statement, 3, request->limit);
        exit_code = sj_query_print(&sj_command_diff, &request->options, statement);
    }
    if (exit_code == SJ_EXIT_OK && !is_comparable) {
        return sj_command_error(&sj_command_diff, SJ_EXIT_INCONCLUSIVE, SJ_STRIPPED_TEXT);
    }
    return exit_code == SJ_EXIT_OK && request->exit_code && differs ? SJ_EXIT_DIFFERS : exit_code;
}

static int run_diff(int argc, char **argv)
{
    static const char *const hidden_first[] = {
        "decided_by", "p", "calls_[ab]", "95 % CI", "calls_change", "total_[ab]", "calls", NULL};
    diff_request request = {.by = "time", .limit = -1, .options.hidden_first = hidden_first};
    int first = 0;
    const int code = sj_options_parse(&sj_command_diff, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    sj_work_progress_start();
    if (sj_compare_of_find(request.by) == SJ_COMPARE_OF) {
        return sj_command_usage_error(&sj_command_diff,
                                      "--by takes time, cpu or allocated, not '%s'", request.by);
    }
    if (argc - first < 2) {
        return sj_command_usage_error(&sj_command_diff,
                                      "give two sets of sessions, and one FILE at most");
    }
    const int file_code =
        sj_query_parse_file(&sj_command_diff, argc, argv, first + 2, &request.options.file);
    if (file_code >= 0) {
        return file_code;
    }
    request.a = argv[first];
    request.b = argv[first + 1];
    request.options.cluster_sets[0] = request.a;
    request.options.cluster_sets[1] = request.b;
    sqlite3 *database;
    sj_terminal terminal;
    int exit_code = sj_query_open(&sj_command_diff, &request.options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        sj_terminal_open(&terminal);
        request.options.terminal = &terminal;
        const sj_compare_side sides[2] = {{database, request.a}, {database, request.b}};
        sj_clock_mix_warn(&sj_command_diff, sides);
        exit_code = print_diff(database, &request);
        (void)sj_terminal_close(&terminal); /* still open after a failure */
        sqlite3_close(database);
    }
    return exit_code;
}

static const sj_option diff_options[] = {
    SJ_DATABASE_OPTION(offsetof(diff_request, options.file)),
    {.name = "by",
     .argument = "WHAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(diff_request, by),
     .help = "time (self time, the default), cpu or allocated: CPU time or bytes of measured\n"
             "calls (record --cpu-time, --memory), without measured calls inside them"},
    SJ_QUERY_CLUSTER_OPTIONS(offsetof(diff_request, options)),
    {.name = "tree",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(diff_request, tree),
     .help = "call paths instead of functions"},
    {.name = "all",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(diff_request, all),
     .help = "also rows that are equal or take less than 0.5 % of the time"},
    {.name = "limit",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(diff_request, limit),
     .least = 1,
     .help = "only the first N rows"},
    {.name = "exit-code",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(diff_request, exit_code),
     .help = "end with 4 when a function became slower or faster, was added or removed, or is\n"
             "called more or less often in all sessions"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(diff_request, options)),
    {0}};

const sj_command sj_command_diff = {
    .name = "diff",
    .summary = "compare two sets of sessions, with the certainty of each change",
    .usage = "sojourn diff [OPTIONS] A B [FILE]",
    .help =
        "A and B are sets of sessions: a session_id, the beginning of a uuid, last, last:N, all,\n"
        "device:NAME, device-id:ID, device-tag:KEY[=VALUE], build:ID, tag:KEY[=VALUE], name:GLOB,\n"
        "command:GLOB, since:TIME, until:TIME,\n"
        "mark:NAME (each time between its begin and end); + joins filters (and), a comma sets\n"
        "(or). Each session is one measurement. Ten a side decide most changes (adjusted p at\n"
        "most 0.05, and at least 2 %); below six almost nothing can be decided. Call counts that\n"
        "never vary are exact: a change of them stands first.\n",
    .options = diff_options,
    .examples = "Examples:\n"
                "  sojourn diff 1 2\n"
                "  sojourn diff tag:build=41 tag:build=42 lab.db\n"
                "  sojourn diff device:pi+mark:start device:desk+mark:start lab.db\n",
    .run = run_diff,
};
