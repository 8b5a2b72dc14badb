#include "collector-server/cli/report_table.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/query/mean_column.h"
#include "collector-server/query/query.h"
#include "collector-server/query/session_columns.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BAR_COLUMNS = 10, EIGHTHS = 8, HOT_PERCENT = 10, LEAST_NAME = 15 };

static const char *colour(const sj_terminal *terminal, const char *code)
{
    return terminal->colour ? code : "";
}

/* Runs a query about a session that returns one row. The caller finalizes `row`. */
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

/* Calls in the windows that were counted without a clock. The error of their total time grows with
 * the square root of their number, as for any sum. If fewer than two timed calls exist, the error
 * is all their time. The query reads every call in the windows of functions with such calls. */
#define UNTIMED_IN_WINDOWS                                                                         \
    "(SELECT c.function_id, count(*) AS untimed_calls FROM json_each(?11) AS x CROSS JOIN calls "  \
    "AS c ON c.session_id = ?1 AND c.stream_id = x.value ->> 0 AND c.start_ns >= x.value ->> 1 "   \
    "AND c.start_ns < x.value ->> 2 AND c.function_id IN (SELECT function_id FROM function_stats " \
    "WHERE session_id = ?1 AND untimed_calls > 0) WHERE c.flags & 16 AND c.duration_ns IS NOT "    \
    "NULL GROUP BY c.function_id)"

#define UNTIMED_SHARE "CAST(n.untimed_calls AS REAL) / u.untimed_calls"

/* The calls in the windows, grouped by function, with `columns` from the tables in `joined`. */
#define CALLS_IN_WINDOWS(columns, joined)                                                          \
    "(SELECT ?1 AS session_id, a.function_id, sum(a.calls) AS calls, sum(a.total_ns) AS "          \
    "total_ns, sum(a.self_ns) AS self_ns, min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns, "      \
    "sum(a.duration_ns) / sum(a.calls) AS mean_ns, NULL AS untrusted" columns                      \
    " FROM json_each(?11) AS w CROSS JOIN call_aggregate(?1, w.value ->> "                         \
    "1, w.value ->> 2, w.value ->> 0) AS a " joined " GROUP BY a.function_id HAVING "              \
    "sum(a.calls) > 0)"

static bool is_of_windows(const sj_call_choice *choice)
{
    return choice != NULL && choice->selection != NULL;
}

/* Columns that are NULL unless the whole session is reported. */
#define NOT_OF_WINDOWS                                                                             \
    ", NULL AS histogram, NULL AS cpu_ns, NULL AS cpu_self_ns, NULL AS allocations, NULL AS "      \
    "allocated_bytes, NULL AS frees, NULL AS freed_bytes, NULL AS allocated_self_bytes"

/* SQLite computes the mean only if it is used. */
#define WHOLE_SESSION                                                                              \
    "(SELECT st.*, " SJ_MEAN_NS("st.session_id",                                                   \
                                "st.function_id") " AS mean_ns FROM function_stats AS st)"

const char *sj_report_source(const sj_call_choice *choice, const sj_report_selection *selection,
                             const char *sort)
{
    if (!is_of_windows(choice)) {
        return WHOLE_SESSION;
    }
    return sj_report_asks_for(selection, sort, "untimed") ||
                   sj_report_asks_for(selection, sort, "error")
               ? CALLS_IN_WINDOWS(
                     NOT_OF_WINDOWS
                     ", n.untimed_calls, CAST(u.error_ns * iif(u.sampled_calls < 2, " UNTIMED_SHARE
                     ", sqrt(" UNTIMED_SHARE ")) AS INTEGER) AS error_ns",
                     "LEFT JOIN " UNTIMED_IN_WINDOWS " AS n ON n.function_id = a.function_id "
                     "LEFT JOIN function_stats AS u ON u.session_id = ?1 AND u.function_id = "
                     "n.function_id")
               : CALLS_IN_WINDOWS(NOT_OF_WINDOWS, "");
}

/* Counts the calls that were open at the end of the recording. Counts separately the calls that are
 * open while the recording runs. */
static sj_status count_open(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                            sj_session_summary *summary, sj_error *error)
{
    static const char sql[] =
        "SELECT count(*) FILTER (WHERE is_counted), count(*) FILTER (WHERE NOT is_counted), "
        "min(start_ns) FILTER (WHERE NOT is_counted) FROM open_now(?1) AS o WHERE (?12 IS NULL OR "
        "function_id IN (SELECT value FROM json_each(?12))) AND (?11 IS NULL OR EXISTS (SELECT 1 "
        "FROM json_each(?11) AS w WHERE w.value ->> 0 = o.stream_id AND o.start_ns >= "
        "w.value ->> 1 AND o.start_ns < w.value ->> 2))";
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database, sql, -1, &row, NULL);
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
    char *sql = sqlite3_mprintf(
        "SELECT count(*) FILTER (WHERE chosen), coalesce(sum(calls) FILTER (WHERE chosen), 0), "
        "coalesce(sum(untrusted) FILTER (WHERE chosen), 0), max(coalesce(sum(self_ns), 0), %s) "
        "FROM (SELECT *, ?12 IS NULL OR function_id IN (SELECT value FROM json_each(?12)) AS "
        "chosen "
        "FROM %s WHERE session_id = ?1)",
        /* A call that began in a window may end after it. Its callees after the window are not in
         * the sum of self times. */
        is_of_windows(choice) ? "coalesce(max(total_ns), 0)" : "0",
        is_of_windows(choice) ? CALLS_IN_WINDOWS("", "") : "function_stats");
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
    printf("%.*s%s", (int)bytes, text, cut ? "\xe2\x80\xa6" : "");
}

static void print_when(sqlite3_stmt *row, const sj_terminal *terminal)
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

static void print_trust(sqlite3_stmt *row, const sj_session_summary *summary,
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

/* Prints the kind of a flight recording or flight dump, and how long threads waited for the
 * recorder. */
static sj_status print_kind(sqlite3 *database, int64_t session_id, const sj_terminal *terminal,
                            sj_error *error)
{
    static const char sql[] =
        "SELECT CASE WHEN s.parent_session_id IS NOT NULL THEN 'a flight dump of session ' ||"
        " s.parent_session_id || (SELECT iif(count(*) = 0, '', '; sums count ' || count(*) ||"
        " iif(count(*) = 1, ' call', ' calls') || ' that began before it, single calls do not')"
        " FROM open_before(?1)) WHEN s.mode = 'flight' THEN 'a flight recording, whose calls are "
        "in "
        "its"
        " dumps: ' || coalesce((SELECT 'session ' || group_concat(d.session_id, ', ') FROM sessions"
        " AS d WHERE d.parent_session_id = s.session_id), 'none was made') END, (SELECT"
        " count(*) FROM gaps AS g WHERE g.session_id = ?1 AND " SJ_GAP_IS_WAIT "), (SELECT"
        " coalesce(sum(g.end_ns - g.start_ns), 0) FROM gaps AS g WHERE g.session_id = ?1"
        " AND " SJ_GAP_IS_WAIT ") FROM sessions AS s WHERE s.session_id = ?1";
    sqlite3_stmt *row = NULL;
    char text[256];
    char duration[SJ_DURATION_TEXT_BYTES];
    SJ_TRY(find_row(database, sql, session_id, &row, error));
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
    sqlite3_finalize(row);
    return SJ_OK;
}

sj_status sj_session_header_print(sqlite3 *database, int64_t session_id,
                                  const sj_session_summary *summary, const sj_terminal *terminal,
                                  sj_error *error)
{
    static const char sql[] =
        "SELECT session_id, name, command, started_realtime_ns, ended_realtime_ns, state, "
        "max(lost_calls, coalesce(device_lost_calls, 0)), "
        "(SELECT count(*) FROM threads WHERE session_id = ?1), missing_blocks, missing_calls "
        "FROM sessions "
        "WHERE session_id = ?1";
    sqlite3_stmt *row = NULL;
    SJ_TRY(find_row(database, sql, session_id, &row, error));
    char title[SJ_FUNCTION_NAME_BYTES];
    char clean[SJ_FUNCTION_NAME_BYTES];
    char threads[SJ_THREAD_SUMS_BYTES];
    snprintf(title, sizeof(title), "session %lld: %s", (long long)session_id,
             (const char *)sqlite3_column_text(row, 2));
    fputs(colour(terminal, "\033[1m"), stdout);
    print_cut(sj_function_name_fit(title, 0, clean), terminal);
    printf("%s\n", colour(terminal, "\033[0m"));
    print_when(row, terminal);
    print_trust(row, summary, terminal);
    sj_thread_sums_line(&summary->threads, threads);
    if (threads[0] != '\0') {
        print_cut(threads, terminal);
        putchar('\n');
    }
    sqlite3_finalize(row);
    return print_kind(database, session_id, terminal, error);
}

static bool is_left(const sj_report_column *column)
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
        printf(is_left(column) ? "%-*s%s" : "%*s%s", last && is_left(column) ? 0 : column->width,
               name, last ? "" : " ");
    }
    printf("%s\n", colour(terminal, "\033[0m"));
}

/* Prints a bar in eighths of a column, padded to its width. */
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
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    const int eighths = (int)(share * BAR_COLUMNS * EIGHTHS + 0.5);
    int columns = 0;
    for (; columns < eighths / EIGHTHS; columns++) {
        fputs("\xe2\x96\x88", stdout);
    }
    if (eighths % EIGHTHS != 0) {
        fputs(parts[eighths % EIGHTHS], stdout);
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

/* Returns the columns for a text: the rest of the line for the last column, else the column's
 * width. 0: unlimited. */
static int room_of(const sj_report_selection *selection, const sj_terminal *terminal, size_t at)
{
    if (at + 1 < selection->count) {
        return selection->columns[at]->width;
    }
    int room = terminal->columns;
    for (size_t i = 0; i < at; i++) {
        room -= selection->columns[i]->width + 1;
    }
    return terminal->columns == SJ_TERMINAL_UNLIMITED ? 0 : room < LEAST_NAME ? LEAST_NAME : room;
}

static void print_text(const char *text, int room, int padded)
{
    char fitted[SJ_FUNCTION_NAME_BYTES];
    sj_function_name_fit(text != NULL ? text : "", room, fitted);
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

static void print_cell(const sj_report_column *column, const sj_terminal *terminal, int room,
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
        print_text(slash != NULL ? slash + 1 : text, room, last ? 0 : column->width);
        break;
    case SJ_REPORT_FUNCTION:
        print_text(text, room, last ? 0 : column->width);
        break;
    }
}

/* Reads expression `at` of SJ_REPORT_ESTIMATES, counted from 0. */
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
        /* A copy, because a value of the row cannot first be converted to text and then be read as
         * a number. */
        sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(statement, (int)i));
        const int room = wide ? 0 : room_of(selection, terminal, i);
        if (value != NULL) {
            const bool marked =
                strcmp(selection->columns[i]->name, "self") == 0 ? is_self : is_total;
            print_cell(selection->columns[i], terminal, room, last, marked, value);
        }
        sqlite3_value_free(value);
        fputs(last ? "\n" : " ", stdout);
    }
}
