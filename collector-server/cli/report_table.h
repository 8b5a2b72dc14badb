/* The table of `sojourn report`: a header about the session, and a row for each function. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/report_columns.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/thread_sums.h"

#include <sqlite3.h>
#include <stdint.h>

/* The figures of a session that the header shows. */
typedef struct sj_session_summary {
    int64_t functions; /* functions with calls */
    int64_t calls;     /* calls that ended, or were open at the end of the recording */
    int64_t open;      /* calls that were open at the end of the recording; also in `calls` */
    int64_t running;   /* open calls while the session is being recorded; not in `calls` */
    int64_t running_since_ns; /* entry of the first running call, since the session's start */
    /* calls whose time is inexact because of a gap or because the thread waited for the recorder */
    int64_t inexact;
    int64_t self_ns; /* sum of all self times */
    sj_thread_sums threads;
} sj_session_summary;

/* Lines of the header of a session whose calls are all stored and that has no remarks. */
enum { SJ_SESSION_HEADER_LINES = 4 };

/* Returns SQL for a FROM clause: a row for each function, with the columns of function_stats, over
 * the chosen calls only. Its parameters are ?1, the session_id, and ?11 (sj_call_choice_bind).
 *
 * If only a part of the session is chosen, histograms are NULL. Then untimed_calls and error_ns
 * have values only if the report shows them or is sorted by them, because they require reading
 * every call. */
const char *sj_report_source(const sj_call_choice *choice, const sj_report_selection *selection,
                             const char *sort);

/* Reads the figures of a session, limited to the chosen calls (NULL: all). Fails with SJ_EIO if the
 * database cannot be read, and with SJ_ENOMEM. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_session_summary_read(sqlite3 *database, int64_t session_id,
                                                const sj_call_choice *choice,
                                                sj_session_summary *summary, sj_error *error);

/* Prints the header, a line for each of these facts:
 *   * program and session
 *   * time, duration and state
 *   * calls, threads and losses
 *   * calls that came from the device and are not stored, if any
 *   * whether threads ran or waited, if that is known
 *   * the session is a flight recording or a flight dump
 *   * threads waited for the recorder
 *   * parts of the program were not recorded
 * The header has up to 8 lines. Fails with SJ_EIO. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_session_header_print(sqlite3 *database, int64_t session_id,
                                                const sj_session_summary *summary,
                                                const sj_terminal *terminal, sj_error *error);

void sj_report_heading_print(const sj_report_selection *selection, const sj_terminal *terminal);

/* True if a time in the current row of `statement` is an estimate. The statement should have two
 * columns after the selected columns: sj_report_is_estimate_sql and sj_report_is_self_estimate_sql
 * (schema/queries/cli/report.sql). Returns false if it does not have them. */
bool sj_report_row_is_estimate(const sj_report_selection *selection, sqlite3_stmt *statement);

/* Prints the current row of `statement`, which must have the columns that sj_report_row_is_estimate
 * describes. Estimated times begin with "~". Cuts names to the terminal's width unless `wide` is
 * true. */
void sj_report_row_print(const sj_report_selection *selection, const sj_terminal *terminal,
                         bool wide, sqlite3_stmt *statement);

#endif
