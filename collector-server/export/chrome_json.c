/* chrome-json: trace events for chrome://tracing, Perfetto and speedscope. Every ended call is one
 * complete event ("X"), every open one a begin ("B"); times are microseconds with three decimals.
 * A call whose times are estimates is of the category "estimate". What was recorded of a call
 * (values by name, errno, CPU time, memory) are its "args". Before the calls stand the names of
 * processes and threads ("M"). */
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "proto/block/block.h"

#include <stdbool.h>

static void write_us(FILE *output, const char *key, int64_t ns)
{
    const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(output, ",\"%s\":%s%llu.%03llu", key, ns < 0 ? "-" : "",
            (unsigned long long)(size / 1000), (unsigned long long)(size % 1000));
}

typedef struct event_list {
    FILE *output;
    bool is_begun; /* the next event follows another */
} event_list;

static FILE *next_event(event_list *events)
{
    fputs(events->is_begun ? ",\n{\"name\":" : "\n{\"name\":", events->output);
    events->is_begun = true;
    return events->output;
}

static void write_event(event_list *events, sqlite3_stmt *row,
                        const sj_call_arguments_reader *arguments)
{
    FILE *output = next_event(events);
    const char *name = (const char *)sqlite3_column_text(row, 0);
    sj_json_text(output, name != NULL ? name : "(unknown function)");
    const bool ended = sqlite3_column_type(row, 2) != SQLITE_NULL;
    fprintf(output, ",\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", ended ? 'X' : 'B',
            (long long)sqlite3_column_int64(row, 3), (long long)sqlite3_column_int64(row, 4));
    const bool is_estimate = (sqlite3_column_int64(row, 7) & SJ_CALL_UNTIMED) != 0;
    const bool is_open = sqlite3_column_int64(row, 8) != 0;
    if (is_estimate || is_open) {
        fprintf(output, ",\"cat\":\"%s%s%s\"", is_estimate ? "estimate" : "",
                is_estimate && is_open ? "," : "", is_open ? "open" : "");
    }
    write_us(output, "ts", sqlite3_column_int64(row, 1));
    if (ended) {
        write_us(output, "dur", sqlite3_column_int64(row, 2));
    }
    sj_call_arguments_write(arguments, sqlite3_column_int64(row, 5), sqlite3_column_int64(row, 6),
                            output);
    fputc('}', output);
}

static sj_status cannot_read(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
}

static sj_status write_names(sqlite3 *database, int64_t session_id, event_list *events,
                             sj_error *error)
{
    static const char sql[] =
        "SELECT DISTINCT 'process_name', p.executable, p.pid, p.pid FROM processes AS p "
        "WHERE p.session_id = ?1 AND p.executable <> '' UNION ALL "
        "SELECT DISTINCT 'thread_name', t.name, coalesce(p.pid, ?1), t.tid FROM threads AS t "
        "LEFT JOIN processes AS p ON p.session_id = t.session_id AND p.number = t.process_number "
        "WHERE t.session_id = ?1 AND t.name <> '' AND t.tid <> 0";
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return cannot_read(database, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        FILE *output = next_event(events);
        fprintf(output, "\"%s\",\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"args\":{\"name\":",
                (const char *)sqlite3_column_text(row, 0), (long long)sqlite3_column_int64(row, 2),
                (long long)sqlite3_column_int64(row, 3));
        sj_json_text(output, (const char *)sqlite3_column_text(row, 1));
        fputs("}}", output);
    }
    sqlite3_finalize(row);
    return result == SQLITE_DONE ? SJ_OK : cannot_read(database, error);
}

static sj_status write_calls(sqlite3 *database, int64_t session_id, event_list *events,
                             sj_error *error)
{
    static const char sql[] =
        "SELECT f.name, c.start_ns, c.duration_ns, coalesce(p.pid, ?1), "
        "coalesce(nullif(t.tid, 0), c.stream_id), c.function_id, c.call_id, c.flags,"
        " c.ending = 'open' FROM calls AS c "
        "LEFT JOIN functions AS f ON f.function_id = c.function_id "
        "LEFT JOIN threads AS t ON t.thread_id = c.thread_id "
        "LEFT JOIN processes AS p ON p.session_id = t.session_id AND p.number = t.process_number "
        "WHERE c.session_id = ?1 ORDER BY c.call_id";
    sqlite3_stmt *row;
    sj_call_arguments_reader arguments;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return cannot_read(database, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    sj_status status = sj_call_arguments_open(database, session_id, &arguments, error);
    int result = SQLITE_DONE;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        write_event(events, row, &arguments);
    }
    if (status == SJ_OK && result != SQLITE_DONE) {
        status = cannot_read(database, error);
    }
    sj_call_arguments_close(&arguments);
    sqlite3_finalize(row);
    return status;
}

static sj_status write_chrome(sqlite3 *database, int64_t session_id, FILE *output, sj_error *error)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", output);
    event_list events = {.output = output};
    sj_status status = write_names(database, session_id, &events, error);
    if (status == SJ_OK) {
        status = write_calls(database, session_id, &events, error);
    }
    fputs("\n]}\n", output);
    return status;
}

const sj_exporter sj_exporter_chrome_json = {
    .name = "chrome-json",
    .summary = "trace events for chrome://tracing, Perfetto and speedscope",
    .lists_calls = true,
    .write = write_chrome,
};
