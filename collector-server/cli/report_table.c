#include "collector-server/cli/report_table.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"
#include "schema/queries/cli/report.h"
#include "schema/queries/cli/report_table.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BAR_COLUMNS = 10, EIGHTHS = 8, HOT_PERCENT = 10, LEAST_NAME = 15 };

static const char *colour(const sj_terminal *terminal, const char *code)
{
    return terminal->colour ? code : "";
}

/* Runs a query with the parameter ?1 session_id, and reads its first row. The caller finalizes
 * `row`. Fails with SJ_EIO. */
static sj_status find_row(sqlite3 *database, const char *sql, int64_t session_id,
                          sqlite3_stmt **row, sj_error *error)
{
    int result = sqlite3_prepare_v2(database, sql, -1, row, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(*row, 1, session_id);
        result = sqlite3_step(*row);
    }
    if (result != SQLITE_ROW) {
        sqlite3_finalize(*row);
        return sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
    }
    return SJ_OK;
}

/* True if only calls of some threads or times are chosen. */
static bool is_of_windows(const sj_call_choice *choice)
{
    return choice != NULL && choice->selection != NULL;
}

const char *sj_report_source(const sj_call_choice *choice, const sj_report_selection *selection,
                             const char *sort)
{
    if (!is_of_windows(choice)) {
        return sj_report_whole_session_sql;
    }
    return sj_report_asks_for(selection, sort, "untimed") ||
                   sj_report_asks_for(selection, sort, "error")
               ? sj_report_windows_untimed_sql
               : sj_report_windows_sql;
}

/* Counts the calls that were open at the end of the recording. While the recording runs, counts the
 * open calls in summary->running instead. */
static sj_status count_open(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                            sj_session_summary *summary, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database, sj_report_open_calls_count_sql, -1, &row, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        if (choice != NULL) {
            sj_call_choice_bind(choice, row);
        }
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        summary->open = sqlite3_column_int64(row, 0);
        summary->running = sqlite3_column_int64(row, 1);
        summary->running_since_ns = sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
}

sj_status sj_session_summary_read(sqlite3 *database, int64_t session_id,
                                  const sj_call_choice *choice, sj_session_summary *summary,
                                  sj_error *error)
{
    sqlite3_stmt *row = NULL;
    *summary = (sj_session_summary){0};
    char *sql = sqlite3_mprintf(sj_report_summary_sql,
                                /* A call that began in a window may end after it. Its callees after
                                 * the window are not in the sum of self times. */
                                is_of_windows(choice) ? "coalesce(max(total_ns), 0)" : "0",
                                is_of_windows(choice) ? sj_report_windows_sql : "function_stats");
    if (sql == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const int result = sqlite3_prepare_v2(database, sql, -1, &row, NULL);
    sqlite3_free(sql);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        if (choice != NULL) {
            sj_call_choice_bind(choice, row);
        }
    }
    if (result != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW) {
        sqlite3_finalize(row);
        return sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
    }
    summary->functions = sqlite3_column_int64(row, 0);
    summary->calls = sqlite3_column_int64(row, 1);
    summary->inexact = sqlite3_column_int64(row, 2);
    summary->self_ns = sqlite3_column_int64(row, 3);
    sqlite3_finalize(row);
    SJ_TRY(count_open(database, session_id, choice, summary, error));
    return sj_thread_sums_read(database, session_id, choice, &summary->threads, error);
}

static void print_cut(const char *text, const sj_terminal *terminal)
{
    const bool cut = terminal->columns > 0 && sj_text_width(text) > terminal->columns;
    const size_t bytes = cut ? sj_text_cut(text, terminal->columns - 1) : strlen(text);
    printf("%.*s%s", (int)bytes, text, cut ? sj_text_ellipsis() : "");
}

static void print_time_and_state(sqlite3_stmt *row, const sj_terminal *terminal)
{
    char when[64] = "";
    char text[256];
    char duration[SJ_DURATION_TEXT_BYTES];
    struct tm parts;
    const time_t started = (time_t)(sqlite3_column_int64(row, 3) / 1000000000);
    if (localtime_r(&started, &parts) != NULL) {
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %Z", &parts);
    }
    const bool ended = sqlite3_column_type(row, 4) != SQLITE_NULL;
    snprintf(text, sizeof(text), "%s, %s%s%s", when,
             ended ? sj_format_duration(sqlite3_column_int64(row, 4) - sqlite3_column_int64(row, 3),
                                        duration)
                   : "",
             ended ? ", " : "", (const char *)sqlite3_column_text(row, 5));
    print_cut(text, terminal);
    putchar('\n');
}

static void print_call_counts(sqlite3_stmt *row, const sj_session_summary *summary,
                              const sj_terminal *terminal)
{
    char text[384];
    const int64_t lost = sqlite3_column_int64(row, 6);
    char losses[64] = "none lost";
    char inexact[64] = "";
    char open[128] = "";
    char since[SJ_DURATION_TEXT_BYTES];
    const int64_t blocks = sqlite3_column_int64(row, 8);
    if (lost != 0) {
        snprintf(losses, sizeof(losses), "%lld LOST", (long long)lost);
    } else if (blocks != 0) {
        snprintf(losses, sizeof(losses), "%s LOST", SJ_COUNTED(blocks, "block"));
    }
    if (summary->inexact != 0) {
        snprintf(inexact, sizeof(inexact), "; %lld inexact times", (long long)summary->inexact);
    }
    if (summary->running != 0) {
        snprintf(open, sizeof(open), "; %lld open since %s, not counted yet",
                 (long long)summary->running, sj_format_duration(summary->running_since_ns, since));
    } else if (summary->open != 0) {
        snprintf(open, sizeof(open), "; %lld open at the end", (long long)summary->open);
    }
    const int64_t threads = sqlite3_column_int64(row, 7);
    snprintf(text, sizeof(text), "%s, %s, %s; %s%s%s", SJ_COUNTED(summary->calls, "call"),
             SJ_COUNTED(summary->functions, "function"), SJ_COUNTED(threads, "thread"), losses,
             inexact, open);
    const bool is_whole = lost == 0 && blocks == 0;
    fputs(is_whole ? "" : colour(terminal, "\033[1;31m"), stdout);
    print_cut(text, terminal);
    printf("%s\n", is_whole ? "" : colour(terminal, "\033[0m"));
    if (sqlite3_column_int64(row, 9) != 0) {
        snprintf(text, sizeof(text),
                 "%s of them came from the device and are not stored: frames were refused, or an "
                 "older copy of the database was restored",
                 SJ_COUNTED(sqlite3_column_int64(row, 9), "call"));
        print_cut(text, terminal);
        putchar('\n');
    }
}

/* Prints whether the session is a flight recording or a flight dump, how long threads waited for
 * the recorder, and which parts of the program were not recorded. Prints nothing if none applies.
 */
static sj_status print_kind(sqlite3 *database, int64_t session_id, const sj_terminal *terminal,
                            sj_error *error)
{
    sqlite3_stmt *row = NULL;
    char text[256];
    char duration[SJ_DURATION_TEXT_BYTES];
    SJ_TRY(find_row(database, sj_report_kind_sql, session_id, &row, error));
    if (sqlite3_column_type(row, 0) != SQLITE_NULL) {
        print_cut((const char *)sqlite3_column_text(row, 0), terminal);
        putchar('\n');
    }
    if (sqlite3_column_int64(row, 1) != 0) {
        snprintf(text, sizeof(text),
                 "threads waited for the recorder %s, %s in all: nothing was lost by that",
                 SJ_COUNTED(sqlite3_column_int64(row, 1), "time"),
                 sj_format_duration(sqlite3_column_int64(row, 2), duration));
        print_cut(text, terminal);
        putchar('\n');
    }
    if (sqlite3_column_type(row, 3) != SQLITE_NULL) {
        char clean[SJ_FUNCTION_NAME_BYTES];
        sj_function_name_fit((const char *)sqlite3_column_text(row, 3), 0, clean);
        fputs(colour(terminal, "\033[1;31m"), stdout);
        print_cut(clean, terminal);
        printf("%s\n", colour(terminal, "\033[0m"));
    }
    sqlite3_finalize(row);
    return SJ_OK;
}

sj_status sj_session_header_print(sqlite3 *database, int64_t session_id,
                                  const sj_session_summary *summary, const sj_terminal *terminal,
                                  sj_error *error)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(find_row(database, sj_report_header_sql, session_id, &row, error));
    char title[SJ_FUNCTION_NAME_BYTES];
    char clean[SJ_FUNCTION_NAME_BYTES];
    char threads[SJ_THREAD_SUMS_BYTES];
    snprintf(title, sizeof(title), "session %lld: %s", (long long)session_id,
             (const char *)sqlite3_column_text(row, 2));
    fputs(colour(terminal, "\033[1m"), stdout);
    print_cut(sj_function_name_fit(title, 0, clean), terminal);
    printf("%s\n", colour(terminal, "\033[0m"));
    print_time_and_state(row, terminal);
    print_call_counts(row, summary, terminal);
    sj_thread_sums_line(&summary->threads, threads);
    if (threads[0] != '\0') {
        print_cut(threads, terminal);
        putchar('\n');
    }
    sqlite3_finalize(row);
    return print_kind(database, session_id, terminal, error);
}

static bool is_left_aligned(const sj_report_column *column)
{
    return column->kind >= SJ_REPORT_FILE || column->kind == SJ_REPORT_BAR;
}

void sj_report_heading_print(const sj_report_selection *selection, const sj_terminal *terminal)
{
    fputs(colour(terminal, "\033[4m"), stdout);
    for (size_t i = 0; i < selection->count; i++) {
        const sj_report_column *column = selection->columns[i];
        const bool last = i + 1 == selection->count;
        const char *name = column->kind == SJ_REPORT_BAR ? "" : column->name;
        printf(is_left_aligned(column) ? "%-*s%s" : "%*s%s",
               last && is_left_aligned(column) ? 0 : column->width, name, last ? "" : " ");
    }
    printf("%s\n", colour(terminal, "\033[0m"));
}

/* Prints a bar for a share from 0 to 1, to an eighth of a column, padded to BAR_COLUMNS. */
static void print_bar(double share)
{
    static const char *const parts[EIGHTHS] = {"",
                                               "\xe2\x96\x8f",
                                               "\xe2\x96\x8e",
                                               "\xe2\x96\x8d",
                                               "\xe2\x96\x8c",
                                               "\xe2\x96\x8b",
                                               "\xe2\x96\x8a",
                                               "\xe2\x96\x89"};
    const bool is_ascii = sj_text_is_ascii();
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    const int eighths = (int)(share * BAR_COLUMNS * EIGHTHS + 0.5);
    int columns = 0;
    for (; columns < eighths / EIGHTHS; columns++) {
        fputs(is_ascii ? "#" : "\xe2\x96\x88", stdout);
    }
    if (eighths % EIGHTHS != 0) {
        fputs(is_ascii ? "-" : parts[eighths % EIGHTHS], stdout);
        columns++;
    }
    printf("%*s", BAR_COLUMNS - columns, "");
}

static void print_share(double share, const sj_terminal *terminal)
{
    const bool hot = share * 100 >= HOT_PERCENT;
    printf("%s%5.1f %%%s", hot ? colour(terminal, "\033[1;33m") : "", share * 100,
           hot ? colour(terminal, "\033[0m") : "");
}

/* Returns how many columns of the terminal the text of a cell may use; 0: unlimited. The last cell
 * gets the rest of the line. */
static int find_space(const sj_report_selection *selection, const sj_terminal *terminal, size_t at)
{
    if (at + 1 < selection->count) {
        return selection->columns[at]->width;
    }
    int space = terminal->columns;
    for (size_t i = 0; i < at; i++) {
        space -= selection->columns[i]->width + 1;
    }
    return terminal->columns == SJ_TERMINAL_UNLIMITED ? 0 : space < LEAST_NAME ? LEAST_NAME : space;
}

static void print_text(const char *text, int space, int padded)
{
    char fitted[SJ_FUNCTION_NAME_BYTES];
    sj_function_name_fit(text != NULL ? text : "", space, fitted);
    const int padding = padded - sj_text_width(fitted);
    printf("%s%*s", fitted, padding > 0 ? padding : 0, "");
}

static void print_duration(int width, bool is_estimate, sqlite3_value *value)
{
    char duration[SJ_DURATION_TEXT_BYTES + 1] = "~";
    if (sqlite3_value_type(value) != SQLITE_NULL) {
        sj_format_duration(sqlite3_value_int64(value), duration + is_estimate);
    }
    printf("%*s", width, sqlite3_value_type(value) != SQLITE_NULL ? duration : "");
}

static void print_cell(const sj_report_column *column, const sj_terminal *terminal, int space,
                       bool last, bool is_estimate, sqlite3_value *value)
{
    char bytes[SJ_BYTES_TEXT_BYTES] = "";
    const char *text = (const char *)sqlite3_value_text(value);
    const char *slash = text != NULL ? strrchr(text, '/') : NULL;
    switch (column->kind) {
    case SJ_REPORT_SHARE:
        print_share(sqlite3_value_double(value), terminal);
        break;
    case SJ_REPORT_BAR:
        print_bar(sqlite3_value_double(value));
        break;
    case SJ_REPORT_DURATION:
        print_duration(column->width, is_estimate, value);
        break;
    case SJ_REPORT_COUNT:
        printf("%*s", column->width, text != NULL ? text : "");
        break;
    case SJ_REPORT_BYTES:
        if (text != NULL) {
            sj_format_bytes(sqlite3_value_int64(value), bytes);
        }
        printf("%*s", column->width, bytes);
        break;
    case SJ_REPORT_FILE:
        print_text(slash != NULL ? slash + 1 : text, space, last ? 0 : column->width);
        break;
    case SJ_REPORT_FUNCTION:
        print_text(text, space, last ? 0 : column->width);
        break;
    }
}

/* Reads the estimate flag `at` after the selected columns: 0 is sj_report_is_estimate_sql, 1 is
 * sj_report_is_self_estimate_sql. Returns false if the statement has no flags. */
static bool is_estimate(const sj_report_selection *selection, int at, sqlite3_stmt *statement)
{
    const int column = (int)selection->count + at;
    return sqlite3_column_count(statement) > column && sqlite3_column_int64(statement, column) != 0;
}

bool sj_report_row_is_estimate(const sj_report_selection *selection, sqlite3_stmt *statement)
{
    return is_estimate(selection, 0, statement) || is_estimate(selection, 1, statement);
}

void sj_report_row_print(const sj_report_selection *selection, const sj_terminal *terminal,
                         bool wide, sqlite3_stmt *statement)
{
    const bool is_total = is_estimate(selection, 0, statement);
    const bool is_self = is_estimate(selection, 1, statement);
    for (size_t i = 0; i < selection->count; i++) {
        const bool last = i + 1 == selection->count;
        /* This is a copy, because sqlite3_value_text converts the value, and print_cell may then
         * read it as a number. */
        sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(statement, (int)i));
        const int space = wide ? 0 : find_space(selection, terminal, i);
        if (value != NULL) {
            const bool marked =
                strcmp(selection->columns[i]->name, "self") == 0 ? is_self : is_total;
            print_cell(selection->columns[i], terminal, space, last, marked, value);
        }
        sqlite3_value_free(value);
        fputs(last ? "\n" : " ", stdout);
    }
}
