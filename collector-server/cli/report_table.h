/* A report for people: the session, its functions with their share of the time, and what is
 * hidden. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/report_columns.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/thread_sums.h"
#include "collector-server/query/estimate_columns.h"

#include <sqlite3.h>
#include <stdint.h>

/* A session in a few figures. `report` and `replay` print it first. */
typedef struct sj_session_summary {
    int64_t functions; /* functions with calls */
    int64_t calls;     /* calls that ended, or were open at the end of the recording */
    /* calls open at the end of the recording; `calls` contains them if that end is known */
    int64_t open;
    int64_t running; /* calls that are open while their session is being recorded; not in `calls` */
    int64_t running_since_ns; /* when the first running call began, since the session's start */
    int64_t inexact;          /* calls whose time is inexact because of a gap or a wait */
    int64_t self_ns;          /* all recorded time */
    sj_thread_sums threads;
} sj_session_summary;

enum { SJ_SESSION_HEADER_LINES = 4 };

/* A query in brackets: for each function, the number of chosen calls that were open at the end of
 * the recording. Its columns are function_id and open_calls. Its parameters are those of
 * sj_report_source. */
#define SJ_REPORT_OPEN_CALLS                                                                       \
    "(SELECT o.function_id, count(*) AS open_calls FROM streams AS x JOIN open_calls AS o USING "  \
    "(stream_id) WHERE x.session_id = ?1 AND (?11 IS NULL OR EXISTS (SELECT 1 FROM "               \
    "json_each(?11) AS w WHERE w.value ->> 0 = x.stream_id AND o.start_ns >= w.value ->> 1 AND "   \
    "o.start_ns < w.value ->> 2)) GROUP BY o.function_id)"

/* Returns a table, or a query in brackets, that has a row for each function with the columns of
 * function_stats. It counts only the chosen calls. Its parameters are ?1, the session, and ?11.
 * | If only a part of the session is chosen there are no quantiles: histograms are NULL.
 * untimed_calls and error_ns need a read of every call, so they exist only if they are selected or
 * sorted by.
 */
const char *sj_report_source(const sj_call_choice *choice, const sj_report_selection *selection,
                             const char *sort);

/* Adds up the functions of a session, limited to the chosen calls (NULL: all). Fails with SJ_EIO.
 * Blocks on the database. */
SJ_MUST_CHECK sj_status sj_session_summary_read(sqlite3 *database, int64_t session_id,
                                                const sj_call_choice *choice,
                                                sj_session_summary *summary, sj_error *error);

/* Prints at most SJ_SESSION_HEADER_LINES lines. They show the program and session; the time,
 * duration and state; and the calls, threads and losses. The last one shows what threads did, if
 * that is known. Fails with SJ_EIO. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_session_header_print(sqlite3 *database, int64_t session_id,
                                                const sj_session_summary *summary,
                                                const sj_terminal *terminal, sj_error *error);

/* Prints the names of the columns. */
void sj_report_heading_print(const sj_report_selection *selection, const sj_terminal *terminal);

/* The expressions after the selected columns, over rows s. The first is true if all times are
 * estimates. The second is true if the self time is an estimate, perhaps only because callees were
 * estimated. */
#define SJ_REPORT_ESTIMATES                                                                        \
    SJ_IS_ESTIMATE("s.session_id", "s.function_id")                                                \
    ", " SJ_IS_SELF_ESTIMATE("s.session_id", "s.function_id")

/* True if times of the current row of `statement` are estimates, as SJ_REPORT_ESTIMATES says. */
bool sj_report_row_is_estimate(const sj_report_selection *selection, sqlite3_stmt *statement);

/* Prints the current row of `statement`: one value per selected column, in their order. Estimates
 * begin with ~. Names are cut to the terminal's width, unless `wide`. */
void sj_report_row_print(const sj_report_selection *selection, const sj_terminal *terminal,
                         bool wide, sqlite3_stmt *statement);

#endif
