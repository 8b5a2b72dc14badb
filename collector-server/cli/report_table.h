/* A report for people: the session, its functions with their share of the time, what is hidden. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TABLE_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/report_columns.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/thread_sums.h"
#include "collector-server/query/estimate_columns.h"

#include <sqlite3.h>
#include <stdint.h>

/* A session in a few figures, as report and replay show it first. */
typedef struct sj_session_summary {
    int64_t functions; /* with calls */
    int64_t calls;     /* that ended, or were open at the end of what was recorded */
    int64_t open;      /* calls that were: `calls` has them if that end is known */
    int64_t running;   /* calls that are open while their session is recorded: not in `calls` */
    int64_t running_since_ns; /* when the first of those began, since the session's start */
    int64_t inexact;          /* of those, whose time a gap or a wait makes inexact */
    int64_t self_ns;          /* all recorded time */
    sj_thread_sums threads;
} sj_session_summary;

enum { SJ_SESSION_HEADER_LINES = 4 };

/* A query in brackets: the calls of each function that were open at the end of what was recorded,
 * of those that are chosen. It has the columns function_id and open_calls, and the parameters of
 * sj_report_source. */
#define SJ_REPORT_OPEN_CALLS                                                                       \
    "(SELECT o.function_id, count(*) AS open_calls FROM streams AS x JOIN open_calls AS o USING "  \
    "(stream_id) WHERE x.session_id = ?1 AND (?11 IS NULL OR EXISTS (SELECT 1 FROM "               \
    "json_each(?11) AS w WHERE w.value ->> 0 = x.stream_id AND o.start_ns >= w.value ->> 1 AND "   \
    "o.start_ns < w.value ->> 2)) GROUP BY o.function_id)"

/* sj_report_source is the table, or a query in brackets, that has a row for each function, with the
 * columns of function_stats: of the calls that are chosen. It has the parameters ?1, the session,
 * and ?11. Without whole sessions there are no quantiles: histograms are NULL then; untimed_calls
 * and error_ns, for which every call is read, are there if they are selected or sorted by. */
const char *sj_report_source(const sj_call_choice *choice, const sj_report_selection *selection,
                             const char *sort);

/* sj_session_summary_read adds up the functions of a session, as far as they are chosen (NULL:
 * all). SJ_EIO. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_session_summary_read(sqlite3 *database, int64_t session_id,
                                                const sj_call_choice *choice,
                                                sj_session_summary *summary, sj_error *error);

/* sj_session_header_print prints SJ_SESSION_HEADER_LINES lines at most: program and session; when,
 * how long, state; calls, threads, losses; what threads did, if that is known. SJ_EIO. Blocks on
 * the database. */
SJ_MUST_CHECK sj_status sj_session_header_print(sqlite3 *database, int64_t session_id,
                                                const sj_session_summary *summary,
                                                const sj_terminal *terminal, sj_error *error);

/* sj_report_heading_print prints the names of the columns. */
void sj_report_heading_print(const sj_report_selection *selection, const sj_terminal *terminal);

/* The expressions behind the selected columns, of rows s: whether all times are estimates, and
 * whether the self time is, if only because of what was called. */
#define SJ_REPORT_ESTIMATES                                                                        \
    SJ_IS_ESTIMATE("s.session_id", "s.function_id")                                                \
    ", " SJ_IS_SELF_ESTIMATE("s.session_id", "s.function_id")

/* sj_report_row_is_estimate: times of the row that `statement` stands on are estimates, as
 * SJ_REPORT_ESTIMATES says. */
bool sj_report_row_is_estimate(const sj_report_selection *selection, sqlite3_stmt *statement);

/* sj_report_row_print prints the row that `statement` stands on: one value a selected column, in
 * their order; ~ stands in front of estimates. Names are cut to the terminal's width, unless
 * `wide`. */
void sj_report_row_print(const sj_report_selection *selection, const sj_terminal *terminal,
                         bool wide, sqlite3_stmt *statement);

#endif
