/* chrome-json: trace events for chrome://tracing, Perfetto and speedscope. Every ended call is one
 * complete event ("X"), every open one a begin ("B"); times are microseconds with three decimals.
 * What was recorded of a call (values by name, errno, CPU time, memory) are its "args". */
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"

#include <stdbool.h>

static void write_us(FILE *output, const char *key, int64_t ns)
{
    const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(output, ",\"%s\":%s%llu.%03llu", key, ns < 0 ? "-" : "",
            (unsigned long long)(size / 1000), (unsigned long long)(size % 1000));
}

static void write_event(FILE *output, sqlite3_stmt *row, const sj_call_arguments_reader *arguments,
                        bool first)
{
    fputs(first ? "\n{\"name\":" : ",\n{\"name\":", output);
    const char *name = (const char *)sqlite3_column_text(row, 0);
    sj_json_text(output, name != NULL ? name : "(unknown function)");
    const bool ended = sqlite3_column_type(row, 2) != SQLITE_NULL;
    fprintf(output, ",\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", ended ? 'X' : 'B',
            (long long)sqlite3_column_int64(row, 3), (long long)sqlite3_column_int64(row, 4));
    write_us(output, "ts", sqlite3_column_int64(row, 1));
    if (ended) {
        write_us(output, "dur", sqlite3_column_int64(row, 2));
    }
    sj_call_arguments_write(arguments, sqlite3_column_int64(row, 5), sqlite3_column_int64(row, 6),
                            output);
    fputc('}', output);
}

static sj_status write_chrome(sqlite3 *database, int64_t session_id, FILE *output, sj_error *error)
{
    static const char sql[] =
        "SELECT f.name, c.start_ns, c.duration_ns, coalesce(p.pid, ?1), "
        "coalesce(nullif(t.tid, 0), c.stream_id), c.function_id, c.call_id FROM calls AS c "
        "LEFT JOIN functions AS f ON f.function_id = c.function_id "
        "LEFT JOIN threads AS t ON t.thread_id = c.thread_id "
        "LEFT JOIN processes AS p ON p.session_id = t.session_id AND p.number = t.process_number "
        "WHERE c.session_id = ?1 ORDER BY c.call_id";
    sqlite3_stmt *row;
    sj_call_arguments_reader arguments;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    sj_status status = sj_call_arguments_open(database, session_id, &arguments, error);
    if (status != SJ_OK) {
        sj_call_arguments_close(&arguments);
        sqlite3_finalize(row);
        return status;
    }
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", output);
    int result;
    for (bool first = true; (result = sqlite3_step(row)) == SQLITE_ROW; first = false) {
        write_event(output, row, &arguments, first);
    }
    fputs("\n]}\n", output);
    status = result == SQLITE_DONE
                 ? SJ_OK
                 : sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
    sj_call_arguments_close(&arguments);
    sqlite3_finalize(row);
    return status;
}

const sj_exporter sj_exporter_chrome_json = {
    .name = "chrome-json",
    .summary = "trace events for chrome://tracing, Perfetto and speedscope",
    .write = write_chrome,
};
