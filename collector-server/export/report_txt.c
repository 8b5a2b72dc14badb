/* report.txt: the cost of each function, sorted by total time, descending; times in nanoseconds. */
#include "collector-server/export/exporter.h"

#include "collector-server/query/estimate_columns.h"
#include "collector-server/query/mean_column.h"

#include <inttypes.h>

static sj_status write_head(sqlite3 *database, int64_t session_id, FILE *output, sj_error *error)
{
    static const char sql[] =
        "SELECT d.name, s.name, s.command, s.state, datetime(s.started_realtime_ns / 1000000000,"
        " 'unixepoch'), s.stored_calls, max(s.lost_calls, coalesce(s.device_lost_calls, 0))"
        " FROM sessions AS s JOIN devices AS d USING (device_id) WHERE s.session_id = ?1";
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    if (sqlite3_step(row) == SQLITE_ROW) {
        static const char *const labels[] = {"device",  "name",  "command", "state",
                                             "started", "calls", "lost"};
        for (int i = 0; i < 7; i++) {
            fprintf(output, "%-8s %s\n", labels[i], (const char *)sqlite3_column_text(row, i));
        }
    }
    sqlite3_finalize(row);
    return SJ_OK;
}

static sj_status write_report(sqlite3 *database, const sj_call_part *part, FILE *output,
                              sj_error *error)
{
    static const char sql[] =
        "SELECT s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns,"
        " " SJ_MEAN_NS(
            "s.session_id",
            "s.function_id") ", histogram_quantile(s.histogram, 0.5, s.session_id, "
                             "s.min_ns, s.max_ns),"
                             " histogram_quantile(s.histogram, 0.95, s.session_id, s.min_ns, "
                             "s.max_ns),"
                             " histogram_quantile(s.histogram, 0.99, s.session_id, s.min_ns, "
                             "s.max_ns), s.untrusted,"
                             " s.untimed_calls, s.error_ns, " SJ_IS_SELF_ESTIMATE(
                                 "s.session_id",
                                 "s.function_id") ", coalesce(o.open_calls, 0), coalesce(f.name, "
                                                  "'(function ' || "
                                                  "s.function_id || ')') FROM "
                                                  "function_stats AS s"
                                                  " LEFT JOIN functions AS f USING (function_id) "
                                                  "LEFT JOIN (SELECT function_id, count(*) AS "
                                                  "open_calls FROM open_now(?1) WHERE is_counted "
                                                  "GROUP BY 1) AS o USING (function_id) "
                                                  "WHERE s.session_id = ?1"
                                                  " ORDER BY s.total_ns DESC, s.function_id";
    static const char *const heads[] = {
        "calls",  "total_ns", "self_ns",   "min_ns",  "max_ns",   "mean_ns",       "p50_ns",
        "p95_ns", "p99_ns",   "untrusted", "untimed", "error_ns", "self_estimate", "open"};
    enum { NUMBERS = sizeof(heads) / sizeof(heads[0]) };
    sqlite3_stmt *row = NULL;
    int result;
    SJ_TRY(write_head(database, part->session_id, output, error));
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, part->session_id);
    fputc('\n', output);
    for (int i = 0; i < NUMBERS; i++) {
        fprintf(output, "%14s ", heads[i]);
    }
    fprintf(output, "function\n");
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < NUMBERS; i++) {
            fprintf(output, "%14" PRId64 " ", (int64_t)sqlite3_column_int64(row, i));
        }
        fprintf(output, "%s\n", (const char *)sqlite3_column_text(row, NUMBERS));
    }
    sqlite3_finalize(row);
    return result == SQLITE_DONE
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
}

const sj_exporter sj_exporter_report_txt = {
    .name = "report.txt",
    .endings = ".report.txt",
    .summary = "what each function cost: calls, times, quantiles, the most first",
    .is_whole = true,
    .write = write_report,
};
