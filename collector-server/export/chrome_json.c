/* chrome-json: trace events for chrome://tracing, Perfetto and speedscope. A call is a begin event
 * ("B") and an end event ("E"), in time order on its track. Times are microseconds. Readers add and
 * round the times of complete events ("X") as floating-point numbers. Then a call can seem to end
 * after its caller, and speedscope leaves the caller open for good.
 *
 * A track is the own stack of a thread. Coroutines and signal stacks have tracks of their own,
 * because their calls are not inside the calls of the thread. The "args" of the begin event are the
 * recorded data of the call: values by name, errno, CPU time, memory. The categories are "estimate"
 * if its times are estimates, "open" if it was open at the end of the recording, and "truncated" if
 * its exit was lost. The names of processes and threads ("M") precede the calls.
 *
 * Design notes. Calls are read by call id: stream by stream, in the order of entry. Only open calls
 * are held in memory. */
#include "schema/queries/export/chrome_json.h"
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "proto/base/array.h"
#include "proto/block/block.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Times are counted in hundredths of ns, so that an end and a begin in the same ns get different
 * times. Speedscope sorts begins and ends separately and confuses events of the same time. A double
 * distinguishes such times during the first 19 hours. */
enum { PARTS_OF_NS = 100, PARTS_OF_US = 1000 * PARTS_OF_NS };

/* The columns of the statement in write_calls. */
enum {
    COLUMN_NAME,
    COLUMN_START,
    COLUMN_END,
    COLUMN_PID,
    COLUMN_TRACK,
    COLUMN_FUNCTION,
    COLUMN_CALL,
    COLUMN_FLAGS,
    COLUMN_ENDING,
    COLUMN_STREAM,
    COLUMN_DEPTH
};

typedef struct open_call {
    int64_t depth, end_ns;
    size_t name_at; /* offset in event_list.names */
    bool has_end;
} open_call;

typedef struct event_list {
    FILE *output;
    bool is_begun; /* true after the first event */
    int64_t stream_id, pid, track;
    open_call *open;
    size_t count, capacity;
    char *names; /* names of the open calls, each terminated by NUL */
    size_t names_capacity;
    int64_t last_at; /* time of the track's latest event, in parts of a ns */
    char last_phase; /* B, E, or 0 if the track has no event yet */
} event_list;

static FILE *next_event(event_list *events)
{
    fputs(events->is_begun ? ",\n{\"name\":" : "\n{\"name\":", events->output);
    events->is_begun = true;
    return events->output;
}

static void write_us(FILE *output, int64_t at)
{
    const uint64_t size = at < 0 ? -(uint64_t)at : (uint64_t)at;
    fprintf(output, ",\"ts\":%s%llu.", at < 0 ? "-" : "", (unsigned long long)(size / PARTS_OF_US));
    if (size % PARTS_OF_NS == 0) {
        fprintf(output, "%03u", (unsigned)(size % PARTS_OF_US / PARTS_OF_NS));
    } else {
        fprintf(output, "%05u", (unsigned)(size % PARTS_OF_US));
    }
}

/* Writes the fields that begin and end events share, and remembers the time. */
static void write_moment(event_list *events, const char *name, char phase, int64_t at_ns)
{
    FILE *output = next_event(events);
    int64_t at = at_ns * PARTS_OF_NS;
    if (events->last_phase != 0) {
        const int64_t least = events->last_at + (phase != events->last_phase ? 1 : 0);
        at = at < least ? least : at;
    }
    sj_json_text(output, name);
    fprintf(output, ",\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", phase, (long long)events->pid,
            (long long)events->track);
    write_us(output, at);
    events->last_at = at;
    events->last_phase = phase;
}

/* Ends the innermost open call. If its end is unknown, uses the end of the nearest caller with a
 * known end. If `next_ns` (the start of the next sibling) is earlier, or no caller has a known end,
 * uses `next_ns` instead. NULL means there is no sibling. If neither is known, the call stays
 * open. */
static void write_end(event_list *events, const int64_t *next_ns)
{
    const open_call *call = &events->open[--events->count];
    const open_call *known = call;
    while (!known->has_end && known > events->open) {
        --known;
    }
    int64_t end_ns = known->has_end ? known->end_ns : 0;
    if (next_ns != NULL && (!known->has_end || (!call->has_end && *next_ns < end_ns))) {
        end_ns = *next_ns;
    }
    if (known->has_end || next_ns != NULL) {
        write_moment(events, events->names + call->name_at, 'E', end_ns);
        fputc('}', events->output);
    }
}

static void write_ends(event_list *events, int64_t depth, const int64_t *next_ns)
{
    while (events->count != 0 && events->open[events->count - 1].depth >= depth) {
        write_end(events, next_ns);
    }
}

static void write_categories(FILE *output, bool is_estimate, const char *ending)
{
    const bool has_no_exit = strcmp(ending, "open") == 0 || strcmp(ending, "truncated") == 0;
    if (is_estimate || has_no_exit) {
        fprintf(output, ",\"cat\":\"%s%s%s\"", is_estimate ? "estimate" : "",
                is_estimate && has_no_exit ? "," : "", has_no_exit ? ending : "");
    }
}

static sj_status push_call(event_list *events, sqlite3_stmt *row, const char *name)
{
    const open_call *last = events->count != 0 ? &events->open[events->count - 1] : NULL;
    const size_t at = last != NULL ? last->name_at + strlen(events->names + last->name_at) + 1 : 0;
    const size_t bytes = strlen(name) + 1;
    SJ_TRY(sj_array_reserve(&events->names, &events->names_capacity, at, bytes, 1));
    SJ_TRY(sj_array_reserve(&events->open, &events->capacity, events->count, 1,
                            sizeof(*events->open)));
    memcpy(events->names + at, name, bytes);
    events->open[events->count++] =
        (open_call){.depth = sqlite3_column_int64(row, COLUMN_DEPTH),
                    .end_ns = sqlite3_column_int64(row, COLUMN_END),
                    .name_at = at,
                    .has_end = sqlite3_column_type(row, COLUMN_END) != SQLITE_NULL};
    return SJ_OK;
}

static void begin_track(event_list *events, sqlite3_stmt *row)
{
    write_ends(events, 0, NULL);
    events->stream_id = sqlite3_column_int64(row, COLUMN_STREAM);
    events->pid = sqlite3_column_int64(row, COLUMN_PID);
    events->track = sqlite3_column_int64(row, COLUMN_TRACK);
    events->last_phase = 0;
}

static sj_status write_call(event_list *events, sqlite3_stmt *row,
                            const sj_call_arguments_reader *arguments)
{
    const int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
    const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
    const char *ending = (const char *)sqlite3_column_text(row, COLUMN_ENDING);
    name = name != NULL ? name : "(unknown function)";
    if (events->stream_id != sqlite3_column_int64(row, COLUMN_STREAM)) {
        begin_track(events, row);
    }
    write_ends(events, sqlite3_column_int64(row, COLUMN_DEPTH), &start_ns);
    write_moment(events, name, 'B', start_ns);
    write_categories(events->output,
                     (sqlite3_column_int64(row, COLUMN_FLAGS) & SJ_CALL_UNTIMED) != 0,
                     ending != NULL ? ending : "");
    sj_call_arguments_write(arguments, sqlite3_column_int64(row, COLUMN_FUNCTION),
                            sqlite3_column_int64(row, COLUMN_CALL), events->output);
    fputc('}', events->output);
    return push_call(events, row, name);
}

static sj_status cannot_read(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
}

static sj_status write_names(sqlite3 *database, int64_t session_id, event_list *events,
                             sj_error *error)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sj_chrome_json_names_sql, -1, &row, NULL) != SQLITE_OK) {
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
    sqlite3_stmt *row;
    sj_call_arguments_reader arguments;
    if (sqlite3_prepare_v2(database, sj_chrome_json_calls_sql, -1, &row, NULL) != SQLITE_OK) {
        return cannot_read(database, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    sj_status status = sj_call_arguments_open(database, session_id, &arguments, error);
    int result = SQLITE_DONE;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        status = write_call(events, row, &arguments);
    }
    write_ends(events, 0, NULL);
    if (status == SJ_ENOMEM || status == SJ_ELIMIT) {
        (void)!sj_fail(error, status, "no memory for the open calls");
    } else if (status == SJ_OK && result != SQLITE_DONE) {
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
    free(events.open);
    free(events.names);
    fputs("\n]}\n", output);
    return status;
}

const sj_exporter sj_exporter_chrome_json = {
    .name = "chrome-json",
    .summary = "trace events for chrome://tracing, Perfetto and speedscope",
    .lists_calls = true,
    .write = write_chrome,
};
