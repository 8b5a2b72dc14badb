#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/report_coverage.h"
#include "collector-server/cli/report_table.h"
#include "collector-server/cli/source_lines.h"
#include "collector-server/cli/unnamed_functions.h"
#include "collector-server/cli/unrecorded_code.h"
#include "collector-server/cli/waits.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/query/shipped_queries.h"
#include "schema/queries/cli/report.h"

#include <string.h>

/* OTHER_LINES: lines of a screen that are not functions. They are the session header, a blank line,
 * the heading, a blank line, the number of hidden functions and the next prompt. */
enum { OTHER_LINES = SJ_SESSION_HEADER_LINES + 5, LEAST_ROWS = 5 };

typedef struct report_request {
    sj_query_options query;
    sj_call_choice choice;
    const char *sort;
    const char *columns; /* NULL: the columns that fit */
    int64_t limit;       /* 0: a screenful on a terminal, else all */
    bool all;
    bool waiting;
    bool costs;
    bool by_value;
    sj_report_coverage coverage;
    /* derived from the options: */
    sj_report_selection selection;
    sj_terminal terminal;
    sj_waits *waits; /* NULL: neither a column nor --sort needs them */
} report_request;

static const char waiting_columns[] = "share,total,working,waiting,function";
static const char costs_columns[] = "calls,total,cpu,cpu_self,allocations,allocated,net,function";

/* Returns the SQL expression for a key of --sort, NULL for an unknown key. */
static const char *sort_expression(const char *name)
{
    if (strcmp(name, "name") == 0) {
        return "f.name";
    }
    const sj_report_column *column = sj_report_column_find(name, strlen(name));
    const bool is_amount =
        column != NULL && (column->kind == SJ_REPORT_DURATION || column->kind == SJ_REPORT_COUNT ||
                           column->kind == SJ_REPORT_BYTES);
    return is_amount ? column->expression : NULL;
}

/* Appends the SQL of a column. Markdown shows durations and sizes as text, with "~" before an
 * estimated duration. In the other formats, the SQL makes the numbers; the column name ends with
 * the unit. */
static void append_column(sqlite3_str *sql, const report_request *request,
                          const sj_report_column *column)
{
    const bool is_duration = column->kind == SJ_REPORT_DURATION;
    const bool is_bytes = column->kind == SJ_REPORT_BYTES;
    const sj_result_format format = request->query.format;
    if (column->expression == NULL) {
        sqlite3_str_appendf(sql, "CAST(s.%s AS REAL) / nullif(?2, 0) AS %s",
                            strcmp(request->sort, "self") == 0 ? "self_ns" : "total_ns",
                            column->name);
    } else if (is_duration && format == SJ_RESULT_MARKDOWN) {
        sqlite3_str_appendf(sql, "iif(%s, '~', '') || format_duration(%s) AS %s",
                            strcmp(column->name, "self") == 0 ? sj_report_is_self_estimate_sql
                                                              : sj_report_is_estimate_sql,
                            column->expression, column->name);
    } else if (is_bytes && format == SJ_RESULT_MARKDOWN) {
        sqlite3_str_appendf(sql, "format_bytes(%s) AS %s", column->expression, column->name);
    } else {
        sqlite3_str_appendf(sql, "%s AS %s%s", column->expression, column->name,
                            is_duration ? "_ns"
                            : is_bytes  ? "_bytes"
                                        : "");
    }
}

/* Returns the statement of a report, to be freed with sqlite3_free. Parameters: ?1 is the session,
 * ?2 the sum of all self times, ?3 the number of rows. */
static char *make_sql(const report_request *request)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT ");
    for (size_t i = 0; i < request->selection.count; i++) {
        sqlite3_str_appendall(sql, i == 0 ? "" : ", ");
        append_column(sql, request, request->selection.columns[i]);
    }
    if (request->query.format == SJ_RESULT_TABLE) {
        sqlite3_str_appendf(sql, ", %s, %s", sj_report_is_estimate_sql,
                            sj_report_is_self_estimate_sql);
    }
    sqlite3_str_appendall(sql, " ");
    sqlite3_str_appendf(sql, sj_report_rows_sql,
                        sj_report_source(&request->choice, &request->selection, request->sort),
                        sj_report_asks_for(&request->selection, request->sort, SJ_REPORT_OPEN)
                            ? sj_report_open_calls_sql
                            : "",
                        request->costs ? SJ_REPORT_MEASURED : "1", sort_expression(request->sort),
                        strcmp(request->sort, "name") == 0 ? "ASC" : "DESC");
    return sqlite3_str_finish(sql);
}

/* Returns the number of functions to show; -1: all. */
static int64_t count_shown(const report_request *request)
{
    if (request->limit != 0 || request->all) {
        return request->all ? -1 : request->limit;
    }
    const int space = request->terminal.rows - OTHER_LINES;
    return request->terminal.rows == SJ_TERMINAL_UNLIMITED
               ? -1
               : (space < LEAST_ROWS ? LEAST_ROWS : space);
}

static const char waits_note[] = "\nworking, waiting: lower bounds, for calls of 40 ms or more;\n"
                                 "for all calls if CPU time was measured (record --cpu-time)\n";

static const char estimates_note[] =
    "\n~ estimates: most calls, or those that were made from there (self), were counted\n"
    "without a clock (--clock adaptive); --columns calls,untimed,total,error,function\n"
    "shows how many, and the error\n";

static const char costs_note[] =
    "no calls of a whole session were measured: record with --cpu-time\n"
    "FUNCTION or --memory FUNCTION, and report without --from, --thread\n"
    "and the like\n";

static sj_status print_head(const report_request *request, sqlite3 *database, int64_t session_id,
                            const sj_session_summary *summary, sj_error *error)
{
    const sj_terminal *terminal = &request->terminal;
    SJ_TRY(sj_session_header_print(database, session_id, summary, terminal, error));
    if (request->waiting) {
        SJ_TRY(sj_thread_sums_print(database, session_id, &request->choice, terminal, error));
    }
    putchar('\n');
    sj_report_heading_print(&request->selection, terminal);
    return SJ_OK;
}

/* Prints where most CPU time passed, if that code is not recorded, and where names are missing.
 * Prints nothing if only a part of the session was selected. */
static sj_status print_advice(const report_request *request, sqlite3 *database, int64_t session_id,
                              sj_error *error)
{
    sj_unrecorded_code code;
    sj_unnamed_functions unnamed;
    if (request->choice.selection == NULL) {
        SJ_TRY(sj_unrecorded_code_read(database, session_id, NULL, &code, error));
        sj_unrecorded_code_print(stdout, &code, "\n", "  ");
        SJ_TRY(sj_unnamed_functions_read(database, session_id, SJ_DPKG_FOLDER, &unnamed, error));
        sj_unnamed_functions_print(stdout, &unnamed, "\n");
    }
    return SJ_OK;
}

typedef struct table_rows {
    report_request *request;
    int64_t shown;
    bool has_estimates;
} table_rows;

static sj_status print_row(void *context, sqlite3_stmt *row)
{
    table_rows *rows = context;
    const report_request *request = rows->request;
    sj_report_row_print(&request->selection, &request->terminal, request->query.wide, row);
    rows->has_estimates |= sj_report_row_is_estimate(&request->selection, row);
    rows->shown++;
    return ferror(stdout) ? SJ_EEXIST : SJ_OK;
}

static int print_table(report_request *request, sqlite3_stmt *statement, int64_t session_id,
                       const sj_session_summary *summary)
{
    sqlite3 *database = sqlite3_db_handle(statement);
    sj_terminal *terminal = &request->terminal;
    sj_error error = {0};
    table_rows rows = {.request = request};
    if (request->all || request->limit > terminal->rows - OTHER_LINES) {
        sj_terminal_page(terminal);
    }
    sj_status status = print_head(request, database, session_id, summary, &error);
    if (status == SJ_OK) {
        status = sj_sql_each_row(statement, print_row, &rows, &error);
    }
    fputs(rows.has_estimates ? estimates_note : "", stdout);
    if (status == SJ_OK && request->costs && rows.shown == 0) {
        fputs(costs_note, stdout);
    } else if (status == SJ_OK && !request->costs && rows.shown < summary->functions) {
        printf("\n%lld more functions; --all shows them\n",
               (long long)(summary->functions - rows.shown));
    }
    if (request->waits != NULL) {
        fputs(waits_note, stdout);
    }
    if (status == SJ_OK) {
        status = print_advice(request, database, session_id, &error);
    }
    const bool written = sj_terminal_close(terminal);
    if (status != SJ_OK && status != SJ_EEXIST) {
        return sj_command_failed(&sj_command_report, &error);
    }
    return written
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_report, SJ_EXIT_FAILED, "cannot write the result");
}

/* Divides the time of calls into working and waiting, if a column or --sort needs that. */
static sj_status register_waits(report_request *request, sqlite3 *database, int64_t session_id,
                                sj_error *error)
{
    if (!sj_report_asks_for(&request->selection, request->sort, SJ_REPORT_WORKING) &&
        !sj_report_asks_for(&request->selection, request->sort, SJ_REPORT_WAITING)) {
        return SJ_OK;
    }
    SJ_TRY(sj_waits_read(database, session_id, &request->choice, &request->waits, error));
    return sj_waits_register(database, request->waits, error);
}

static int print_report(report_request *request)
{
    sj_work_progress_start();
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_report, &request->query, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    sj_session_summary summary;
    sj_error error = {0};
    sqlite3_stmt *statement = NULL;
    if (sj_call_choice_find(database, session_id, &request->choice, &error) != SJ_OK ||
        sj_source_lines_register(database, &error) != SJ_OK ||
        register_waits(request, database, session_id, &error) != SJ_OK) {
        sj_waits_free(request->waits);
        sqlite3_close(database);
        return sj_command_failed(&sj_command_report, &error);
    }
    if (request->choice.selection != NULL) {
        sj_query_warn_of_totals(&sj_command_report, database, session_id);
    }
    const sj_status read_status =
        sj_session_summary_read(database, session_id, &request->choice, &summary, &error);
    if (read_status == SJ_OK && request->selection.count == 0) {
        sj_report_columns_fit(request->query.wide ? 0 : request->terminal.columns,
                              sj_source_lines_exist(database, session_id), summary.open != 0,
                              &request->selection);
    }
    char *sql = make_sql(request);
    if (read_status != SJ_OK) {
        exit_code = sj_command_failed(&sj_command_report, &error);
    } else if (sql == NULL ||
               sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_report, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_int64(statement, 1, session_id);
        sqlite3_bind_int64(statement, 2, summary.self_ns);
        sqlite3_bind_int64(statement, 3, count_shown(request));
        sj_call_choice_bind(&request->choice, statement);
        if (request->query.format == SJ_RESULT_TABLE) {
            exit_code = print_table(request, statement, session_id, &summary);
            sqlite3_finalize(statement);
        } else {
            exit_code = sj_query_print(&sj_command_report, &request->query, statement);
        }
    }
    sqlite3_free(sql);
    sqlite3_close(database);
    sj_waits_free(request->waits);
    return exit_code;
}

static void bind_by_name(sqlite3_stmt *statement, const char *name, const char *text)
{
    sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, name), text, -1,
                      SQLITE_STATIC);
}

/* Prints the calls of functions, grouped by their recorded values. */
static int print_by_value(const report_request *request)
{
    static const char table_sql[] =
        "SELECT function, which, value, note, calls, format_duration(total_ns) AS total, "
        "format_duration(p50_ns) AS p50, format_duration(max_ns) AS max, format_duration(cpu_ns) "
        "AS cpu, slowest_call_id FROM (%s) LIMIT iif(:limit > 0, :limit, -1)";
    static const char data_sql[] = "SELECT * FROM (%s) LIMIT iif(:limit > 0, :limit, -1)";
    const bool is_data =
        request->query.format == SJ_RESULT_JSON || request->query.format == SJ_RESULT_CSV;
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_report, &request->query, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    sqlite3_stmt *statement = NULL;
    const sj_shipped_query *query = sj_shipped_query_find("slow_values");
    char *sql = sqlite3_mprintf(is_data ? data_sql : table_sql, query->text);
    if (sql == NULL || sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_report, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":session"),
                           session_id);
        sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":limit"),
                           request->limit);
        bind_by_name(statement, ":function",
                     request->choice.function != NULL ? request->choice.function : "*");
        exit_code = sj_query_print(&sj_command_report, &request->query, statement);
    }
    sqlite3_free(sql);
    sqlite3_close(database);
    return exit_code;
}

/* Selects the columns that the options or the format ask for. Leaves the selection empty for a
 * table without such options: print_report then selects the columns that fit. */
static sj_status choose_columns(report_request *request, sj_error *error)
{
    sj_report_selection *selection = &request->selection;
    if (request->query.format == SJ_RESULT_TABLE) {
        sj_terminal_open(&request->terminal);
    }
    if (request->waiting || request->costs) {
        return sj_report_columns_parse(request->costs ? costs_columns : waiting_columns, selection,
                                       error);
    }
    if (request->columns != NULL) {
        return sj_report_columns_parse(request->columns, selection, error);
    }
    if (request->query.format != SJ_RESULT_TABLE) {
        sj_report_columns_data(selection);
    }
    return SJ_OK;
}

/* True if an option is used that --by-value does not support. */
static bool excludes_by_value(const report_request *request)
{
    const sj_call_choice *choice = &request->choice;
    return choice->thread != NULL || choice->process != NULL || choice->mark != NULL ||
           choice->module != NULL || choice->callers != NULL || choice->has_from ||
           choice->has_to || request->waiting || request->costs || request->columns != NULL ||
           strcmp(request->sort, "total") != 0;
}

static int run_report(int argc, char **argv)
{
    report_request request = {.sort = "total"};
    int first = 0;
    const int code = sj_options_parse(&sj_command_report, argc, argv, &request, &first);
    const int choice_code =
        code >= 0 ? code : sj_call_choice_check(&sj_command_report, &request.choice);
    if (choice_code >= 0) {
        return choice_code;
    }
    if (sort_expression(request.sort) == NULL) {
        return sj_command_usage_error(
            &sj_command_report,
            "--sort takes calls, open, total, self, mean, min, max, p50, p95, "
            "p99, untrusted, untimed, error, working, waiting, cpu, cpu_self, "
            "allocations, allocated, allocated_self, frees, freed, net or name, not "
            "'%s'",
            request.sort);
    }
    const int file_code =
        sj_query_parse_file(&sj_command_report, argc, argv, first, &request.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    if (request.all && request.limit != 0) {
        return sj_command_usage_error(&sj_command_report, "--all and --limit exclude each other");
    }
    if (request.waiting + request.costs + (request.columns != NULL) > 1) {
        return sj_command_usage_error(&sj_command_report,
                                      "--waiting, --costs and --columns exclude each other");
    }
    if (request.by_value && excludes_by_value(&request)) {
        return sj_command_usage_error(
            &sj_command_report, "--by-value is about whole sessions and takes --function only");
    }
    if (request.by_value) {
        return print_by_value(&request);
    }
    if (request.coverage.by != NULL) {
        return sj_report_coverage_run(&request.coverage, &request.query);
    }
    if (request.coverage.sessions != NULL || request.coverage.page != NULL) {
        return sj_command_usage_error(&sj_command_report, "--over and --page belong to --coverage");
    }
    sj_error error = {0};
    if (choose_columns(&request, &error) != SJ_OK) {
        return sj_command_usage_error(&sj_command_report, "%s", error.text);
    }
    const int exit_code = print_report(&request);
    sj_call_choice_deinit(&request.choice);
    return exit_code;
}

static const sj_option report_options[] = {
    SJ_DATABASE_OPTION(offsetof(report_request, query.file)),
    SJ_QUERY_SESSION_OPTION(offsetof(report_request, query)),
    SJ_QUERY_CLUSTER_OPTIONS(offsetof(report_request, query)),
    {.name = "sort",
     .argument = "KEY",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(report_request, sort),
     .help =
         "calls, open, total (default), self, mean, min, max, p50, p95, p99, untrusted, untimed,\n"
         "error, working, waiting, cpu, cpu_self, allocations, allocated, allocated_self,\n"
         "frees, freed, net, name"},
    {.name = "columns",
     .argument = "LIST",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(report_request, columns),
     .help = "share, bar, module, source (file and line, from debug data), function and the\n"
             "columns of --sort except name, separated by commas;\n"
             "default: as many as fit"},
    {.name = "by-value",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(report_request, by_value),
     .help = "group calls by their recorded values (record --value), slow ones first; of all\n"
             "functions, or those of --function"},
    {.name = "costs",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(report_request, costs),
     .help = "CPU time and memory of functions that `record --cpu-time` or `--memory` measured:\n"
             "calls, total, cpu, cpu_self, allocations, allocated, net, function"},
    {.name = "waiting",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(report_request, waiting),
     .help = "work and waits of threads, then of functions, with the columns share, total,\n"
             "working, waiting and function"},
    {.name = "all",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(report_request, all),
     .help = "every function, through a pager; default on a terminal: a screenful"},
    {.name = "limit",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(report_request, limit),
     .least = 1,
     .help = "only the first N functions"},
    SJ_CALL_FUNCTION_OPTIONS(offsetof(report_request, choice), "only these functions",
                             "only functions of these modules"),
    SJ_CALL_CHOICE_OPTIONS(offsetof(report_request, choice)),
    {.name = "coverage",
     .argument = "BY",
     .kind = SJ_ARG_TEXT,
     .is_optional = true,
     .offset = offsetof(report_request, coverage.by),
     .help = "the share of functions that were entered, by module (default), namespace,\n"
             "class, function or mark; of lines (record --lines) by file or line"},
    {.name = "over",
     .argument = "SET",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(report_request, coverage.sessions),
     .help = "coverage: merge these sessions, such as all, last:5, tag:KEY=VALUE, mark:NAME"},
    {.name = "page",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(report_request, coverage.page),
     .help = "coverage: as an HTML page"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(report_request, query)),
    {0}};

const sj_command sj_command_report = {
    .name = "report",
    .summary = "show how often each function was called and how long it took",
    .usage = "sojourn report [OPTIONS] [FILE]",
    .help = "The most costly functions come first, with their share of all recorded time: of self\n"
            "time when sorted by self, else of total time.\n"
            "Without FILE: $SOJOURN_DATABASE, else the newest sojourn-*.db here.\n",
    .options = report_options,
    .examples = "Examples:\n"
                "  sojourn report --sort self --limit 20\n"
                "  sojourn report --columns share,calls,p99,function --all\n"
                "  sojourn report --waiting --sort waiting\n"
                "  sojourn report --coverage=class --over all lab.db\n"
                "  sojourn report --session last --csv lab.db > functions.csv\n",
    .run = run_report,
};
