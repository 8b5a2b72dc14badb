/* report.txt: calls and times of each function, the largest total time first. Times are
 * nanoseconds. */
#include "collector-server/export/exporter.h"

#include "schema/queries/export/report_txt.h"

#include <inttypes.h>

static sj_status write_session(void *output, sqlite3_stmt *row)
{
    static const char *const labels[] = {"device",  "name",  "command", "state",
                                         "started", "calls", "lost"};
    for (int i = 0; i < 7; i++) {
        fprintf(output, "%-8s %s\n", labels[i], (const char *)sqlite3_column_text(row, i));
    }
    return SJ_OK;
}

static sj_status write_head(sqlite3 *database, int64_t session_id, FILE *output, sj_error *error)
{
    static const char sql[] =
        "SELECT d.name, s.name, s.command, s.state, datetime(s.started_realtime_ns / 1000000000,"
        " 'unixepoch'), s.stored_calls, max(s.lost_calls, coalesce(s.device_lost_calls, 0))"
        " FROM sessions AS s JOIN devices AS d USING (device_id) WHERE s.session_id = ?1";
    return sj_sql_each(database, sql, SJ_SQL_INTS(session_id), write_session, output, error);
}

static const char *const titles[] = {"calls",   "total_ns", "self_ns",       "min_ns", "max_ns",
                                     "mean_ns", "p50_ns",   "p95_ns",        "p99_ns", "untrusted",
                                     "untimed", "error_ns", "self_estimate", "open"};
enum { NUMBERS = sizeof(titles) / sizeof(titles[0]) };

static sj_status write_function(void *output, sqlite3_stmt *row)
{
    for (int i = 0; i < NUMBERS; i++) {
        fprintf(output, "%14" PRId64 " ", (int64_t)sqlite3_column_int64(row, i));
    }
    fprintf(output, "%s\n", (const char *)sqlite3_column_text(row, NUMBERS));
    return SJ_OK;
}

static sj_status write_report(sqlite3 *database, const sj_call_part *part, FILE *output,
                              sj_error *error)
{
    SJ_TRY(write_head(database, part->session_id, output, error));
    fputc('\n', output);
    for (int i = 0; i < NUMBERS; i++) {
        fprintf(output, "%14s ", titles[i]);
    }
    fprintf(output, "function\n");
    return sj_sql_each(database, sj_report_txt_sql, SJ_SQL_INTS(part->session_id), write_function,
                       output, error);
}

const sj_exporter sj_exporter_report_txt = {
    .name = "report.txt",
    .endings = ".report.txt",
    .summary = "what each function cost: calls, times, quantiles, the most first",
    .is_whole = true,
    .write = write_report,
};
