/* otlp: calls as spans of OpenTelemetry, in the JSON lines of its file exporter
 * (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter). A line has up to SPANS_A_LINE
 * spans of one track. The trace is the session; the parent of a span is its caller. A span costs
 * hundreds of bytes, and its readers are made for requests rather than for every call of a program:
 * only a part of a session can be exported. A call whose end is not known ends with its track, and
 * its attribute `sojourn.ending` says so. */
#include "collector-server/export/call_events.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "proto/base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_A_LINE = 256, TRACE_TEXT = 33 };

typedef struct open_span {
    char *name;   /* owned */
    char *ending; /* owned */
    int64_t call_id, start_ns;
} open_span;

typedef struct span_writer {
    FILE *output;
    char trace[TRACE_TEXT];
    int64_t started_ns;  /* start of the session since the Unix epoch */
    sj_call_track track; /* a copy of the current track; its names are owned */
    int64_t last_ns;     /* the latest time on it */
    open_span *open;
    size_t count, capacity;
    int spans; /* in the current line */
} span_writer;

static void end_line(span_writer *writer)
{
    if (writer->spans != 0) {
        fputs("]}]}]}\n", writer->output);
        writer->spans = 0;
    }
}

static void write_attribute(FILE *output, const char *key, const char *type, int64_t number)
{
    fprintf(output, "{\"key\":\"%s\",\"value\":{\"%s\":\"%" PRId64 "\"}}", key, type, number);
}

static void begin_line(span_writer *writer)
{
    const sj_call_track *track = &writer->track;
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
          "\"stringValue\":",
          writer->output);
    sj_json_text(writer->output, track->process_name);
    fputs("}},", writer->output);
    write_attribute(writer->output, "process.pid", "intValue", track->pid);
    fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"sojourn\"},\"spans\":[", writer->output);
}

static void write_span(span_writer *writer, const open_span *span, int64_t parent_id,
                       int64_t end_ns)
{
    const sj_call_track *track = &writer->track;
    FILE *output = writer->output;
    if (writer->spans++ == 0) {
        begin_line(writer);
    } else {
        fputc(',', output);
    }
    fprintf(output, "{\"traceId\":\"%s\",\"spanId\":\"%016" PRIx64 "\",", writer->trace,
            (uint64_t)span->call_id);
    if (parent_id != 0) {
        fprintf(output, "\"parentSpanId\":\"%016" PRIx64 "\",", (uint64_t)parent_id);
    }
    fputs("\"name\":", output);
    sj_json_text(output, span->name);
    fprintf(output,
            ",\"kind\":1,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
            "\",\"attributes\":[",
            writer->started_ns + span->start_ns, writer->started_ns + end_ns);
    write_attribute(output, "thread.id", "intValue", track->number);
    fputs(",{\"key\":\"thread.name\",\"value\":{\"stringValue\":", output);
    sj_json_text(output, track->name);
    fputs("}},{\"key\":\"sojourn.ending\",\"value\":{\"stringValue\":", output);
    sj_json_text(output, span->ending);
    fputs("}}]}", output);
    if (writer->spans == SPANS_A_LINE) {
        end_line(writer);
    }
}

static void pop_span(span_writer *writer, int64_t at_ns)
{
    open_span *span = &writer->open[--writer->count];
    const int64_t parent = writer->count != 0 ? writer->open[writer->count - 1].call_id : 0;
    write_span(writer, span, parent, at_ns > span->start_ns ? at_ns : span->start_ns);
    free(span->name);
    free(span->ending);
}

static sj_status push_span(span_writer *writer, const sj_call_event *event)
{
    SJ_TRY(sj_array_reserve(&writer->open, &writer->capacity, writer->count, 1,
                            sizeof(*writer->open)));
    open_span *span = &writer->open[writer->count++];
    *span = (open_span){.name = strdup(event->name),
                        .ending = strdup(event->ending),
                        .call_id = event->call_id,
                        .start_ns = event->at_ns};
    return span->name != NULL && span->ending != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Ends the open spans of the track at its latest time, and the line. */
static void end_track(span_writer *writer)
{
    while (writer->count != 0) {
        pop_span(writer, writer->last_ns);
    }
    end_line(writer);
    free(writer->track.name);
    free(writer->track.process_name);
    writer->track = (sj_call_track){0};
}

static sj_status begin_track(span_writer *writer, const sj_call_track *track)
{
    end_track(writer);
    writer->track = *track;
    writer->track.name = strdup(track->name);
    writer->track.process_name = strdup(track->process_name);
    return writer->track.name != NULL && writer->track.process_name != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status write_event(void *context, const sj_call_event *event)
{
    span_writer *writer = context;
    if (writer->track.stream_id != event->track->stream_id) {
        SJ_TRY(begin_track(writer, event->track));
        writer->last_ns = event->at_ns;
    }
    writer->last_ns = event->at_ns > writer->last_ns ? event->at_ns : writer->last_ns;
    if (event->is_begin) {
        return push_span(writer, event);
    }
    if (writer->count != 0) {
        pop_span(writer, event->at_ns);
    }
    return SJ_OK;
}

/* Reads the start of the session, and the number of the trace. */
static sj_status read_session(sqlite3 *database, int64_t session_id, span_writer *writer,
                              sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database,
                                    "SELECT started_realtime_ns, lower(hex(uuid)) FROM sessions "
                                    "WHERE session_id = ?1",
                                    -1, &row, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        writer->started_ns = sqlite3_column_int64(row, 0);
        (void)snprintf(writer->trace, sizeof(writer->trace), "%s",
                       (const char *)sqlite3_column_text(row, 1));
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
}

static sj_status write_otlp(sqlite3 *database, const sj_call_part *part, FILE *output,
                            sj_error *error)
{
    span_writer writer = {.output = output};
    if (!sj_call_part_is_limited(part)) {
        return sj_fail(error, SJ_EINVAL,
                       "otlp has a span for each call: choose a part of the session, for example "
                       "with --function, --mark or --depth");
    }
    SJ_TRY(read_session(database, part->session_id, &writer, error));
    const sj_status status = sj_call_events_read(database, part, write_event, &writer, error);
    end_track(&writer);
    free(writer.open);
    return status;
}

const sj_exporter sj_exporter_otlp = {
    .name = "otlp",
    .endings = ".otlp.json .otlp.jsonl .otlp",
    .summary = "chosen calls as spans of OpenTelemetry, as JSON lines",
    .lists_calls = true,
    .write = write_otlp,
};
