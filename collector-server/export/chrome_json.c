/* chrome-json: trace events for chrome://tracing, Perfetto and speedscope. A call is a begin event
 * ("B") and an end event ("E"), in time order on its track. Times are microseconds. Complete events
 * ("X") are not used: readers add their start and duration as rounded floating-point numbers. Then
 * a call can seem to end after its caller, and speedscope never closes the caller.
 *
 * The "args" of the begin event are the recorded data of the call (call_arguments.h). The
 * categories of a call are "estimate" if its times are estimates; "open" if the call was open at
 * the end of the recording; "truncated" if its exit was lost. Events with the names of processes
 * and threads ("M") precede the calls. */
#include "schema/queries/export/chrome_json.h"
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/call_events.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "collector-server/store/sql.h"

#include <stdbool.h>
#include <string.h>

/* Times are in hundredths of a ns, so that an end and a begin in the same ns get different times.
 * Speedscope sorts begins and ends separately, so it would confuse events of the same time. A
 * double can hold such times up to 19 hours. */
enum { PARTS_OF_NS = 100, PARTS_OF_US = 1000 * PARTS_OF_NS };

typedef struct event_list {
    FILE *output;
    bool is_begun; /* true after the first event */
    sj_call_arguments_reader arguments;
    int64_t stream_id;
    int64_t last_at; /* time of the track's latest event, in parts of a ns */
    char last_phase; /* B, E, or 0 if the track has no event yet */
    sj_error *error;
} event_list;

static FILE *next_event(event_list *events)
{
    fputs(events->is_begun ? ",\n{\"name\":" : "\n{\"name\":", events->output);
    events->is_begun = true;
    return events->output;
}

/* Writes a time, which is in parts of a ns, as microseconds. */
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

/* Writes the fields that begin and end events share. Moves the event to a later time if its phase
 * differs from the latest one at the same time. */
static void write_moment(event_list *events, const sj_call_event *event)
{
    const char phase = event->is_begin ? 'B' : 'E';
    FILE *output = next_event(events);
    int64_t at = event->at_ns * PARTS_OF_NS;
    if (events->last_phase != 0) {
        const int64_t least = events->last_at + (phase != events->last_phase ? 1 : 0);
        at = at < least ? least : at;
    }
    sj_json_text(output, event->name);
    fprintf(output, ",\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", phase, (long long)event->track->pid,
            (long long)event->track->number);
    write_us(output, at);
    events->last_at = at;
    events->last_phase = phase;
}

static void write_categories(FILE *output, bool is_estimate, const char *ending)
{
    const bool has_no_exit = strcmp(ending, "open") == 0 || strcmp(ending, "truncated") == 0;
    if (is_estimate || has_no_exit) {
        fprintf(output, ",\"cat\":\"%s%s%s\"", is_estimate ? "estimate" : "",
                is_estimate && has_no_exit ? "," : "", has_no_exit ? ending : "");
    }
}

static sj_status write_event(void *context, const sj_call_event *event)
{
    event_list *events = context;
    if (events->stream_id != event->track->stream_id) {
        events->stream_id = event->track->stream_id;
        events->last_phase = 0;
    }
    write_moment(events, event);
    if (event->is_begin) {
        write_categories(events->output, event->is_estimate, event->ending);
        SJ_TRY(sj_call_arguments_write(&events->arguments, event->function_id, event->call_id,
                                       ",\"args\":", events->output, events->error));
    }
    fputc('}', events->output);
    return SJ_OK;
}

static sj_status write_name(void *context, sqlite3_stmt *row)
{
    FILE *output = next_event(context);
    fprintf(output, "\"%s\",\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"args\":{\"name\":",
            (const char *)sqlite3_column_text(row, 0), (long long)sqlite3_column_int64(row, 2),
            (long long)sqlite3_column_int64(row, 3));
    sj_json_text(output, (const char *)sqlite3_column_text(row, 1));
    fputs("}}", output);
    return SJ_OK;
}

static sj_status write_chrome(sqlite3 *database, const sj_call_part *part, FILE *output,
                              sj_error *error)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", output);
    event_list events = {.output = output, .error = error};
    sj_status status = sj_call_arguments_open(database, part->session_id, &events.arguments, error);
    if (status == SJ_OK) {
        status = sj_sql_each(database, sj_chrome_json_names_sql, SJ_SQL_INTS(part->session_id),
                             write_name, &events, error);
    }
    if (status == SJ_OK) {
        status = sj_call_events_read(database, part, write_event, &events, error);
    }
    sj_call_arguments_close(&events.arguments);
    fputs("\n]}\n", output);
    return status;
}

const sj_exporter sj_exporter_chrome_json = {
    .name = "chrome-json",
    .endings = ".json",
    .summary = "trace events for chrome://tracing, Perfetto and speedscope",
    .lists_calls = true,
    .write = write_chrome,
};
