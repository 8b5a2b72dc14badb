/* otlp: calls as spans of OpenTelemetry, in the JSON lines of its file exporter
 * (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter). A line has up to SPANS_A_LINE
 * spans of one track. The trace is the session; the parent of a span is its caller. The attribute
 * `sojourn.ending` of a span says how the call ended. otlp_proto.c writes the same spans as
 * protobuf. */
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "collector-server/export/span_reader.h"

#include <inttypes.h>

enum { SPANS_A_LINE = 256 };

typedef struct line_writer {
    FILE *output;
    int spans; /* in the current line */
} line_writer;

static sj_status end_line(void *context, const sj_call_track *track)
{
    line_writer *writer = context;
    (void)track;
    if (writer->spans != 0) {
        fputs("]}]}]}\n", writer->output);
        writer->spans = 0;
    }
    return SJ_OK;
}

static void write_attribute(FILE *output, const char *key, const char *type, int64_t number)
{
    fprintf(output, "{\"key\":\"%s\",\"value\":{\"%s\":\"%" PRId64 "\"}}", key, type, number);
}

static void begin_line(const line_writer *writer, const sj_call_track *track)
{
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
          "\"stringValue\":",
          writer->output);
    sj_json_text(writer->output, track->process_name);
    fputs("}},", writer->output);
    write_attribute(writer->output, "process.pid", "intValue", track->pid);
    fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"sojourn\"},\"spans\":[", writer->output);
}

static void write_trace_id(FILE *output, const uint8_t *trace_id)
{
    for (size_t i = 0; i < SJ_TRACE_ID_BYTES; i++) {
        fprintf(output, "%02x", trace_id[i]);
    }
}

static sj_status write_span(void *context, const sj_span *span)
{
    line_writer *writer = context;
    FILE *output = writer->output;
    if (writer->spans++ == 0) {
        begin_line(writer, span->track);
    } else {
        fputc(',', output);
    }
    fputs("{\"traceId\":\"", output);
    write_trace_id(output, span->trace_id);
    fprintf(output, "\",\"spanId\":\"%016" PRIx64 "\",", (uint64_t)span->call_id);
    if (span->parent_id != 0) {
        fprintf(output, "\"parentSpanId\":\"%016" PRIx64 "\",", (uint64_t)span->parent_id);
    }
    fputs("\"name\":", output);
    sj_json_text(output, span->name);
    fprintf(output,
            ",\"kind\":1,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
            "\",\"attributes\":[",
            span->start_ns, span->end_ns);
    write_attribute(output, "thread.id", "intValue", span->track->number);
    fputs(",{\"key\":\"thread.name\",\"value\":{\"stringValue\":", output);
    sj_json_text(output, span->track->name);
    fputs("}},{\"key\":\"sojourn.ending\",\"value\":{\"stringValue\":", output);
    sj_json_text(output, span->ending);
    fputs("}}]}", output);
    return writer->spans == SPANS_A_LINE ? end_line(writer, span->track) : SJ_OK;
}

static sj_status write_otlp(sqlite3 *database, const sj_call_part *part, FILE *output,
                            sj_error *error)
{
    static const sj_span_receiver receiver = {write_span, end_line};
    line_writer writer = {.output = output};
    return sj_spans_read(database, part, "otlp", &receiver, &writer, error);
}

const sj_exporter sj_exporter_otlp = {
    .name = "otlp",
    .endings = ".otlp.json .otlp.jsonl .otlp",
    .summary = "chosen calls as spans of OpenTelemetry, as JSON lines",
    .lists_calls = true,
    .write = write_otlp,
};
