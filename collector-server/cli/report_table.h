/* A report for people: the session, its functions with their share of the time, and what is
 * hidden. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/report_columns.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/thread_sums.h"

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

/* True if times of the current row of `statement` are estimates. After the selected columns it has
 * sj_report_is_estimate_sql and sj_report_is_self_estimate_sql (schema/queries/cli/report.sql). */
bool sj_report_row_is_estimate(const sj_report_selection *selection, sqlite3_stmt *statement);

/* Prints the current row of `statement`: one value per selected column, in their order. Estimates
 * begin with ~. Names are cut to the terminal's width, unless `wide`. */
void sj_report_row_print(const sj_report_selection *selection, const sj_terminal *terminal,
                         bool wide, sqlite3_stmt *statement);

#endif
