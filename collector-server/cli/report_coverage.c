#include "collector-server/cli/report_coverage.h"

#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/query/coverage_table.h"
#include "collector-server/query/session_set.h"

#include <stdio.h>

enum {
    COLUMN_NAME,
    COLUMN_SHARE,
    COLUMN_ENTERED,
    COLUMN_FUNCTIONS,
    COLUMN_UNWATCHED,
    COLUMN_LAST /* calls; for coverage of lines: lines that were not entered */
};

static void write_escaped(FILE *page, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '&':
            fputs("&amp;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        default:
            fputc(*text, page);
        }
    }
}

static void write_head(FILE *page, const char *by, const char *sessions)
{
    fputs("<!doctype html><meta charset=\"utf-8\"><title>Coverage</title>\n<style>"
          "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse}"
          "td,th{padding:2px 10px;text-align:right}td:first-child,th:first-child{text-align:left;"
          "font-family:ui-monospace,monospace}tr:nth-child(even){background:#f4f4f4}"
          "meter{width:12em}</style>\n<h1>Coverage by ",
          page);
    write_escaped(page, by);
    fputs("</h1>\n<p>Sessions: ", page);
    write_escaped(page, sessions);
    fputs("</p>\n<table><tr><th>name<th>share<th><th>entered<th>", page);
    fputs(sj_coverage_is_of_lines(by) ? "lines<th>unknown<th>not entered\n"
                                      : "functions<th>unwatched<th>calls\n",
          page);
}

static sj_status write_row(void *context, sqlite3_stmt *row)
{
    FILE *page = context;
    const double share = sqlite3_column_double(row, COLUMN_SHARE);
    fputs("<tr><td>", page);
    write_escaped(page, (const char *)sqlite3_column_text(row, COLUMN_NAME));
    fprintf(page, "<td>%.1f %%<td><meter value=\"%.4f\"></meter>", share * 100, share);
    for (int column = COLUMN_ENTERED; column <= COLUMN_LAST; column++) {
        fputs("<td>", page);
        write_escaped(page, (const char *)sqlite3_column_text(row, column));
    }
    fputc('\n', page);
    return SJ_OK;
}

static int write_page(const sj_report_coverage *coverage, const char *by, const char *sessions,
                      sqlite3_stmt *row)
{
    sqlite3 *database = sqlite3_db_handle(row);
    sj_output_file page;
    int code = sj_query_output_open(&sj_command_report, database, coverage->page, &page);
    if (code != SJ_EXIT_OK) {
        sqlite3_finalize(row);
        return code;
    }
    sj_error error = {0};
    write_head(page.file, by, sessions);
    const sj_status status = sj_sql_each_row(row, write_row, page.file, &error);
    fputs("</table>\n", page.file);
    sqlite3_finalize(row);
    if (status != SJ_OK) {
        code = sj_command_failed(&sj_command_report, &error);
    }
    return sj_output_file_close(&sj_command_report, &page, code);
}

/* Prints on standard error, for each session of the set, why its entered lines are not known. */
static sj_status report_refusal(void *context, sqlite3_stmt *row)
{
    const sj_sample *sample = context;
    fprintf(stderr, "sojourn: session %lld: which lines ran is not known: %s\n",
            (long long)sample->session_id, sqlite3_column_text(row, 0));
    return SJ_OK;
}

static int report_why_unknown(sqlite3 *database, const char *sessions)
{
    static const char functions_sql[] =
        "SELECT DISTINCT json_extract(payload, '$.reason') FROM reports "
        "WHERE session_id = ?1 AND monitor = 'lines' AND kind = 'refused'";
    sj_session_set set = {0};
    sj_error error = {0};
    int exit_code = SJ_EXIT_OK;
    if (sj_session_set_read(database, sessions, SJ_SESSION_SET_MAX_SAMPLES, &set, &error) !=
        SJ_OK) {
        return sj_command_failed(&sj_command_report, &error);
    }
    for (size_t i = 0; i < set.count && exit_code == SJ_EXIT_OK; i++) {
        exit_code =
            sj_query_each(&sj_command_report, database, functions_sql,
                          SJ_SQL_INTS(set.samples[i].session_id), report_refusal, &set.samples[i]);
    }
    sj_session_set_deinit(&set);
    return exit_code;
}

int sj_report_coverage_run(const sj_report_coverage *coverage, const sj_query_options *options)
{
    static const char functions_sql[] =
        "SELECT name, %s AS share, entered, functions, unwatched, calls FROM coverage(?1, ?2) "
        "ORDER BY name";
    static const char lines_sql[] =
        "SELECT name, %s AS share, entered, functions AS lines, unwatched AS unknown, "
        "missing AS not_entered FROM coverage(?1, ?2)";
    const bool is_data = options->format == SJ_RESULT_JSON || options->format == SJ_RESULT_CSV ||
                         coverage->page != NULL;
    const char *by = coverage->by != NULL && coverage->by[0] != '\0' ? coverage->by : "module";
    const char *sessions = coverage->sessions;
    sqlite3 *database;
    sqlite3_stmt *row = NULL;
    if (!sj_coverage_is_kind(by)) {
        return sj_command_usage_error(
            &sj_command_report,
            "--coverage is by module, namespace, class, function, mark, file or line, not '%s'",
            by);
    }
    if (sessions == NULL) {
        sessions = options->session != NULL ? options->session : "last";
    }
    int exit_code = sj_query_open(&sj_command_report, options, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    char *text = sqlite3_mprintf(sj_coverage_is_of_lines(by) ? lines_sql : functions_sql,
                                 is_data ? "share" : "format('%.1f %%', 100.0 * share)");
    if (text == NULL || sqlite3_prepare_v2(database, text, -1, &row, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_report, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_text(row, 1, sessions, -1, SQLITE_STATIC);
        sqlite3_bind_text(row, 2, by, -1, SQLITE_STATIC);
        exit_code = coverage->page != NULL ? write_page(coverage, by, sessions, row)
                                           : sj_query_print(&sj_command_report, options, row);
    }
    if (exit_code == SJ_EXIT_OK && sj_coverage_is_of_lines(by)) {
        exit_code = report_why_unknown(database, sessions);
    }
    sqlite3_free(text);
    sqlite3_close(database);
    return exit_code;
}
