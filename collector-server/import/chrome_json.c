/* chrome-json: trace events of chrome://tracing, Perfetto and many other tools. The file is an
 * array of events, or an object with the array `traceEvents`. Calls are begin and end events ("B",
 * "E") in the order of the file, or complete events ("X") in any order. Other events are counted
 * and left out. Times are microseconds. */
#include "collector-server/import/importer.h"
#include "collector-server/import/json_scan.h"
#include "proto/base/units.h"

#include <stdlib.h>

enum { NS_DIGITS = 3, NAME_BYTES = 64 * 1024 };

typedef struct owned_text {
    char *text; /* NAME_BYTES */
    size_t size;
    bool is_set, is_cut;
} owned_text;

typedef struct trace_event {
    uint64_t at; /* offset in the file */
    char phase;
    int64_t pid, tid;
    sj_decimal ts, dur;
    bool has_ts, has_dur;
    owned_text name;
    owned_text given_name; /* args.name: of a process or thread */
} trace_event;

typedef struct event_reader {
    sj_json_scan *scan;
    sj_import_log *log;
    trace_event event;
    uint64_t left_out;
} event_reader;

static void keep_text(const sj_json_scan *scan, owned_text *kept)
{
    kept->is_set = scan->token == SJ_JSON_STRING;
    kept->size = kept->is_set ? scan->size : 0;
    kept->is_cut = kept->is_set && scan->is_cut;
    memcpy(kept->text, scan->text, kept->size);
}

static sj_slice slice_of(const owned_text *text)
{
    return (sj_slice){.data = (const uint8_t *)text->text, .size = text->size};
}

/* Reads the id of a process or thread. A text that is not a number, and a number of more than 63
 * bits, gets a negative number, which depends on the text. */
static sj_status read_id(const sj_json_scan *scan, const char *what, int64_t *id)
{
    sj_decimal value;
    if (scan->token != SJ_JSON_NUMBER && scan->token != SJ_JSON_STRING) {
        return sj_source_fail(scan->source, SJ_ECORRUPT, scan->at, "%s is not a number", what);
    }
    const sj_status status = sj_decimal_parse(scan->text, scan->size, 0, &value);
    if (status == SJ_OK) {
        *id = value.units;
        return SJ_OK;
    }
    if (scan->token == SJ_JSON_NUMBER && status != SJ_ELIMIT) {
        return sj_json_decimal(scan, what, 0, &value);
    }
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < scan->size; i++) {
        hash = (hash ^ (uint8_t)scan->text[i]) * UINT64_C(0x100000001b3);
    }
    *id = -(int64_t)(hash >> 1) - 1;
    return SJ_OK;
}

static sj_status read_arguments(event_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    if (scan->token != SJ_JSON_OBJECT) {
        return sj_json_skip(scan);
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_name = sj_json_is(scan, "name");
        SJ_TRY(sj_json_next(scan));
        if (is_name) {
            keep_text(scan, &reader->event.given_name);
        }
        SJ_TRY(sj_json_skip(scan));
        SJ_TRY(sj_json_next(scan));
    }
    return SJ_OK;
}

/* Reads the value of a member. The scan is at its key. */
static sj_status read_member(event_reader *reader)
{
    static const char *const keys[] = {"name", "ph", "ts", "dur", "pid", "tid", "args"};
    sj_json_scan *scan = reader->scan;
    trace_event *event = &reader->event;
    size_t key = 0;
    while (key < sizeof(keys) / sizeof(keys[0]) && !sj_json_is(scan, keys[key])) {
        key++;
    }
    SJ_TRY(sj_json_next(scan));
    switch (key) {
    case 0:
        keep_text(scan, &event->name);
        return sj_json_skip(scan);
    case 1:
        event->phase = scan->token == SJ_JSON_STRING && scan->size == 1 ? scan->text[0] : '?';
        return sj_json_skip(scan);
    case 2:
        event->has_ts = true;
        return sj_json_decimal(scan, "ts", NS_DIGITS, &event->ts);
    case 3:
        event->has_dur = true;
        return sj_json_decimal(scan, "dur", NS_DIGITS, &event->dur);
    case 4:
        return read_id(scan, "pid", &event->pid);
    case 5:
        return read_id(scan, "tid", &event->tid);
    case 6:
        return read_arguments(reader);
    default:
        return sj_json_skip(scan);
    }
}

static sj_status name_track(event_reader *reader)
{
    const trace_event *event = &reader->event;
    const sj_slice what = slice_of(&event->name);
    const sj_slice name = slice_of(&event->given_name);
    uint32_t thread;
    if (!event->given_name.is_set) {
        return SJ_OK;
    }
    if (what.size == strlen("thread_name") && memcmp(what.data, "thread_name", what.size) == 0) {
        SJ_TRY(sj_import_log_thread(reader->log, event->pid, event->tid, &thread));
        return sj_import_log_name_thread(reader->log, thread, name);
    }
    if (what.size == strlen("process_name") && memcmp(what.data, "process_name", what.size) == 0) {
        return sj_import_log_name_process(reader->log, event->pid, name);
    }
    return SJ_OK;
}

static sj_status fail_event(const event_reader *reader, const char *what)
{
    return sj_source_fail(reader->scan->source, SJ_ECORRUPT, reader->event.at, "the event %s",
                          what);
}

static sj_status add_interval(event_reader *reader, uint32_t thread, uint32_t function)
{
    const trace_event *event = &reader->event;
    sj_decimal end;
    if (!event->has_dur) {
        return fail_event(reader, "of the kind X has no \"dur\"");
    }
    if (sj_decimal_add(&event->ts, &event->dur, &end) != SJ_OK) {
        return fail_event(reader, "ends at a time that is too large");
    }
    const sj_status status =
        sj_import_log_interval(reader->log, thread, function, event->ts.units, end.units);
    return status == SJ_EINVAL ? fail_event(reader, "has a negative \"dur\"") : status;
}

static sj_status add_call(event_reader *reader)
{
    const trace_event *event = &reader->event;
    uint32_t thread;
    uint32_t function;
    if (!event->has_ts) {
        return fail_event(reader, "has no \"ts\"");
    }
    if (event->name.is_cut) {
        return fail_event(reader, "has a name of more than 64 KB");
    }
    SJ_TRY(sj_import_log_thread(reader->log, event->pid, event->tid, &thread));
    if (event->phase == 'E') {
        return sj_import_log_leave(reader->log, thread, event->ts.units, false);
    }
    const sj_slice name = event->name.is_set ? slice_of(&event->name) : sj_import_text("(no name)");
    SJ_TRY(sj_import_log_function(reader->log, name, (sj_slice){0}, &function));
    return event->phase == 'B' ? sj_import_log_enter(reader->log, thread, function, event->ts.units)
                               : add_interval(reader, thread, function);
}

/* Reads one event. The scan is at its first token. */
static sj_status read_event(event_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    trace_event *event = &reader->event;
    if (scan->token != SJ_JSON_OBJECT) {
        return sj_source_fail(scan->source, SJ_ECORRUPT, scan->at, "an event is not an object");
    }
    *event = (trace_event){.at = scan->at,
                           .name = {.text = event->name.text},
                           .given_name = {.text = event->given_name.text}};
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        SJ_TRY(read_member(reader));
        SJ_TRY(sj_json_next(scan));
    }
    switch (event->phase) {
    case 'B':
    case 'E':
    case 'X':
        return add_call(reader);
    case 'M':
        return name_track(reader);
    default:
        reader->left_out++;
        return SJ_OK;
    }
}

static sj_status read_events(event_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_ARRAY_END) {
        SJ_TRY(read_event(reader));
        SJ_TRY(sj_json_next(scan));
    }
    return SJ_OK;
}

static sj_status read_file(event_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    bool has_events = false;
    SJ_TRY(sj_json_next(scan));
    if (scan->token == SJ_JSON_ARRAY) {
        SJ_TRY(read_events(reader));
        return sj_json_next(scan);
    }
    if (scan->token != SJ_JSON_OBJECT) {
        return sj_source_fail(scan->source, SJ_ECORRUPT, 0, "neither an array nor an object");
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_events = sj_json_is(scan, "traceEvents");
        SJ_TRY(sj_json_next(scan));
        has_events = has_events || is_events;
        if (is_events && scan->token != SJ_JSON_ARRAY) {
            return sj_source_fail(scan->source, SJ_ECORRUPT, scan->at,
                                  "\"traceEvents\" is not an array");
        }
        SJ_TRY(is_events ? read_events(reader) : sj_json_skip(scan));
        SJ_TRY(sj_json_next(scan));
    }
    SJ_TRY(sj_json_next(scan));
    return has_events ? SJ_OK
                      : sj_source_fail(scan->source, SJ_ECORRUPT, 0,
                                       "there is no \"traceEvents\"; of JSON files, only trace "
                                       "events and those of speedscope can be read");
}

static sj_status read_chrome(sj_source *source, sj_import_log *log)
{
    event_reader reader = {.log = log};
    reader.scan = malloc(sizeof(*reader.scan));
    reader.event.name.text = malloc(NAME_BYTES + 8);
    reader.event.given_name.text = malloc(NAME_BYTES + 8);
    sj_status status = SJ_ENOMEM;
    if (reader.scan != NULL && reader.event.name.text != NULL &&
        reader.event.given_name.text != NULL) {
        sj_json_scan_init(reader.scan, source);
        status = read_file(&reader);
    }
    if (reader.left_out != 0) {
        sj_import_log_note(log,
                           "%s could not be imported, because only calls can (not instants, "
                           "counters, flows or async events)",
                           SJ_COUNTED(reader.left_out, "event"));
    }
    sj_import_log_note(log, "the format has no modules, no build ids and no date; times count "
                            "from the first call");
    free(reader.scan);
    free(reader.event.name.text);
    free(reader.event.given_name.text);
    return status;
}

/* True if the first byte that is not a space begins an object or an array. */
static bool recognizes_chrome(sj_slice head)
{
    size_t at = 0;
    while (at < head.size && strchr(" \t\r\n", head.data[at]) != NULL && head.data[at] != 0) {
        at++;
    }
    return at < head.size && (head.data[at] == '{' || head.data[at] == '[');
}

const sj_importer sj_importer_chrome_json = {
    .name = "chrome-json",
    .summary = "trace events of chrome://tracing and Perfetto (JSON)",
    .recognizes = recognizes_chrome,
    .read = read_chrome,
};
