/* otlp-proto: the spans of otlp.c in protobuf. The file is one ExportTraceServiceRequest
 * (otlp.proto), as a collector of OpenTelemetry accepts it at /v1/traces. An element of
 * resource_spans has up to SPANS_A_GROUP spans of one track. */
#include "collector-server/export/clean_name.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/message_stream.h"
#include "collector-server/export/span_reader.h"
#include "export/otlp.pb-c.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_A_GROUP = 256, RESOURCE_SPANS = 1, SPAN_ATTRIBUTES = 3 };

/* A span with all that it points to. */
typedef struct kept_span {
    Otlp__Span span;
    uint8_t trace_id[SJ_TRACE_ID_BYTES];
    uint64_t span_id, parent_id; /* big-endian */
    Otlp__KeyValue attributes[SPAN_ATTRIBUTES];
    Otlp__AnyValue values[SPAN_ATTRIBUTES];
    Otlp__KeyValue *attribute_list[SPAN_ATTRIBUTES];
} kept_span;

typedef struct group_writer {
    sj_message_stream stream;
    kept_span *spans; /* SPANS_A_GROUP; owned, with their texts */
    size_t count;
} group_writer;

static void set_number(Otlp__KeyValue *attribute, Otlp__AnyValue *value, char *key, int64_t number)
{
    otlp__key_value__init(attribute);
    otlp__any_value__init(value);
    attribute->key = key;
    attribute->value = value;
    value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
    value->int_value = number;
}

/* `text` is a copy that the caller frees; NULL: out of memory. */
static void set_text(Otlp__KeyValue *attribute, Otlp__AnyValue *value, char *key, char *text)
{
    otlp__key_value__init(attribute);
    otlp__any_value__init(value);
    attribute->key = key;
    attribute->value = value;
    value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = text;
}

static void free_spans(group_writer *writer)
{
    for (size_t i = 0; i < writer->count; i++) {
        kept_span *kept = &writer->spans[i];
        free(kept->span.name);
        free(kept->values[1].string_value);
        free(kept->values[2].string_value);
    }
    writer->count = 0;
}

/* Writes the kept spans as one element of resource_spans. */
static sj_status write_group(group_writer *writer, const sj_call_track *track, char *process)
{
    Otlp__KeyValue attributes[2];
    Otlp__AnyValue values[2];
    Otlp__KeyValue *attribute_list[] = {&attributes[0], &attributes[1]};
    Otlp__Span *spans[SPANS_A_GROUP];
    set_text(&attributes[0], &values[0], "service.name", process);
    set_number(&attributes[1], &values[1], "process.pid", track->pid);
    for (size_t i = 0; i < writer->count; i++) {
        spans[i] = &writer->spans[i].span;
    }
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    resource.n_attributes = 2;
    resource.attributes = attribute_list;
    Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
    scope.name = "sojourn";
    Otlp__ScopeSpans scope_spans = OTLP__SCOPE_SPANS__INIT;
    scope_spans.scope = &scope;
    scope_spans.n_spans = writer->count;
    scope_spans.spans = spans;
    Otlp__ScopeSpans *scopes[] = {&scope_spans};
    Otlp__ResourceSpans group = OTLP__RESOURCE_SPANS__INIT;
    group.resource = &resource;
    group.n_scope_spans = 1;
    group.scope_spans = scopes;
    return sj_message_stream_field(&writer->stream, RESOURCE_SPANS, &group.base);
}

static sj_status end_group(void *context, const sj_call_track *track)
{
    group_writer *writer = context;
    if (writer->count == 0) {
        return SJ_OK;
    }
    char *process = sj_clean_name(track->process_name);
    const sj_status status = process != NULL ? write_group(writer, track, process) : SJ_ENOMEM;
    free(process);
    free_spans(writer);
    return status;
}

static sj_status keep_span(void *context, const sj_span *span)
{
    group_writer *writer = context;
    kept_span *kept = &writer->spans[writer->count++];
    char *thread = sj_clean_name(span->track->name);
    char *ending = strdup(span->ending);
    memcpy(kept->trace_id, span->trace_id, SJ_TRACE_ID_BYTES);
    kept->span_id = htobe64((uint64_t)span->call_id);
    kept->parent_id = htobe64((uint64_t)span->parent_id);
    set_number(&kept->attributes[0], &kept->values[0], "thread.id", span->track->number);
    set_text(&kept->attributes[1], &kept->values[1], "thread.name", thread);
    set_text(&kept->attributes[2], &kept->values[2], "sojourn.ending", ending);
    for (size_t i = 0; i < SPAN_ATTRIBUTES; i++) {
        kept->attribute_list[i] = &kept->attributes[i];
    }
    otlp__span__init(&kept->span);
    kept->span.trace_id = (ProtobufCBinaryData){SJ_TRACE_ID_BYTES, kept->trace_id};
    kept->span.span_id = (ProtobufCBinaryData){sizeof(kept->span_id), (uint8_t *)&kept->span_id};
    if (span->parent_id != 0) {
        kept->span.parent_span_id =
            (ProtobufCBinaryData){sizeof(kept->parent_id), (uint8_t *)&kept->parent_id};
    }
    kept->span.name = sj_clean_name(span->name);
    kept->span.kind = OTLP__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    kept->span.start_time_unix_nano = (uint64_t)span->start_ns;
    kept->span.end_time_unix_nano = (uint64_t)span->end_ns;
    kept->span.n_attributes = SPAN_ATTRIBUTES;
    kept->span.attributes = kept->attribute_list;
    if (kept->span.name == NULL || thread == NULL || ending == NULL) {
        return SJ_ENOMEM;
    }
    return writer->count == SPANS_A_GROUP ? end_group(writer, span->track) : SJ_OK;
}

static sj_status write_otlp_proto(sqlite3 *database, const sj_call_part *part, FILE *output,
                                  sj_error *error)
{
    static const sj_span_receiver receiver = {keep_span, end_group};
    group_writer writer = {.stream = {.output = output},
                           .spans = calloc(SPANS_A_GROUP, sizeof(kept_span))};
    const sj_status status = writer.spans != NULL ? sj_spans_read(database, part, "otlp-proto",
                                                                  &receiver, &writer, error)
                                                  : sj_fail(error, SJ_ENOMEM, "out of memory");
    free_spans(&writer);
    free(writer.spans);
    sj_message_stream_deinit(&writer.stream);
    return status;
}

const sj_exporter sj_exporter_otlp_proto = {
    .name = "otlp-proto",
    .endings = ".otlp.pb .otlp.binpb",
    .summary = "the spans of otlp as protobuf, for /v1/traces of a collector",
    .lists_calls = true,
    .write = write_otlp_proto,
};
