/* speedscope: the file format of speedscope.app. A profile of the type `evented` has the calls of
 * one thread, one of the type `sampled` has stacks. The frames (functions) may come before or after
 * the profiles. */
#include "collector-server/import/importer.h"
#include "collector-server/import/json_scan.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum { MOST_FRAMES = SJ_IMPORT_MOST_FUNCTIONS, NAME_BYTES = 64 * 1024 };

typedef struct sample {
    uint32_t path; /* 0: the stack is empty */
    uint64_t weight;
} sample;

typedef struct file_reader {
    sj_json_scan *scan;
    sj_import_log *log;
    uint32_t *functions; /* by frame: its function; 0: not used yet */
    size_t frame_count, frame_capacity;
    size_t named_frames; /* frames that `shared` has named */
    int64_t profile;     /* number of the profile, from 1 */
    uint32_t thread;
    bool has_thread;
    int shift; /* power of ten that converts the profile's unit to ns; -1: the unit is not a time */
    bool has_unit, used_unit;
    uint32_t *open; /* frames of the open calls */
    size_t open_count, open_capacity;
    sample *samples;
    size_t sample_count, sample_capacity;
    size_t weight_count;
    bool is_ours; /* Sojourn wrote the file */
    char *name;   /* NAME_BYTES */
    size_t name_size;
    char *file_name; /* NAME_BYTES */
    size_t file_size;
    const char *other_unit; /* unit of a profile that is not a time; NULL: none */
} file_reader;

static sj_status fail(const file_reader *reader, const char *what)
{
    return sj_source_fail(reader->scan->source, SJ_ECORRUPT, reader->scan->at, "%s", what);
}

/* Reads a number that must be whole and at least 0. */
static sj_status read_index(const file_reader *reader, const char *what, size_t *index)
{
    sj_decimal value;
    SJ_TRY(sj_json_decimal(reader->scan, what, 0, &value));
    if (value.units < 0 || value.units >= MOST_FRAMES || value.parts != 0) {
        return fail(reader, "a number of a frame is not in range");
    }
    *index = (size_t)value.units;
    return SJ_OK;
}

static sj_status find_function(file_reader *reader, size_t frame, uint32_t *function)
{
    if (frame >= reader->frame_count) {
        SJ_TRY(sj_array_reserve(&reader->functions, &reader->frame_capacity, reader->frame_count,
                                frame + 1 - reader->frame_count, sizeof(*reader->functions)));
        reader->frame_count = frame + 1;
    }
    if (reader->functions[frame] == 0) {
        SJ_TRY(sj_import_log_add_function(reader->log, &reader->functions[frame]));
    }
    *function = reader->functions[frame];
    return SJ_OK;
}

static sj_status read_unit(file_reader *reader)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"nanoseconds", 0}, {"microseconds", 3}, {"milliseconds", 6},
                 {"seconds", 9},     {"bytes", -1},       {"none", -1}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (reader->scan->token == SJ_JSON_STRING && sj_json_is(reader->scan, units[i].name)) {
            if (reader->used_unit) {
                return fail(reader, "the unit of a profile comes behind its times");
            }
            reader->shift = units[i].shift;
            reader->has_unit = true;
            reader->other_unit = units[i].shift < 0 ? units[i].name : reader->other_unit;
            return SJ_OK;
        }
    }
    return fail(reader, "the unit of a profile is not known");
}

static sj_status read_time(file_reader *reader, const char *what, sj_decimal *value)
{
    if (!reader->has_unit) {
        return fail(reader, "the unit of a profile does not come before its times");
    }
    reader->used_unit = true;
    return sj_json_decimal(reader->scan, what, reader->shift < 0 ? 0 : reader->shift, value);
}

/* Reads the thread's and the process's id at the end of a name that Sojourn wrote: "NAME TID of
 * process PID". */
static bool read_own_name(char *name, size_t *size, int64_t *tid, int64_t *pid)
{
    static const char middle[] = " of process ";
    char *of = NULL;
    for (char *found = strstr(name, middle); found != NULL; found = strstr(found + 1, middle)) {
        of = found;
    }
    char *end = of;
    while (end != NULL && end > name && end[-1] >= '0' && end[-1] <= '9') {
        end--;
    }
    if (end == NULL || end == of || end == name || end[-1] != ' ') {
        return false;
    }
    char *last = NULL;
    *tid = strtoll(end, NULL, 10);
    *pid = strtoll(of + strlen(middle), &last, 10);
    *size = (size_t)(end - name) - 1;
    name[*size] = '\0';
    return last != NULL && *last == '\0';
}

static sj_status find_thread(file_reader *reader)
{
    int64_t tid = reader->profile;
    int64_t pid = 0;
    if (reader->has_thread) {
        return SJ_OK;
    }
    reader->has_thread = true;
    if (reader->is_ours && !read_own_name(reader->name, &reader->name_size, &tid, &pid)) {
        tid = reader->profile;
        pid = 0;
    }
    SJ_TRY(sj_import_log_thread(reader->log, pid, tid, &reader->thread));
    return sj_import_log_name_thread(
        reader->log, reader->thread,
        (sj_slice){.data = (const uint8_t *)reader->name, .size = reader->name_size});
}

static sj_status add_event(file_reader *reader, char type, size_t frame, int64_t at_ns)
{
    uint32_t function;
    SJ_TRY(find_thread(reader));
    SJ_TRY(find_function(reader, frame, &function));
    if (type == 'O') {
        SJ_TRY(sj_array_reserve(&reader->open, &reader->open_capacity, reader->open_count, 1,
                                sizeof(*reader->open)));
        reader->open[reader->open_count++] = (uint32_t)frame;
        return sj_import_log_enter(reader->log, reader->thread, function, at_ns);
    }
    if (reader->open_count == 0 || reader->open[reader->open_count - 1] != frame) {
        return fail(reader, "an event closes another frame than the innermost open one");
    }
    reader->open_count--;
    return sj_import_log_leave(reader->log, reader->thread, at_ns, false);
}

/* Reads one event. The scan is at its first token. */
static sj_status read_event(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    char type = 0;
    size_t frame = MOST_FRAMES;
    sj_decimal at = {0};
    bool has_at = false;
    if (scan->token != SJ_JSON_OBJECT) {
        return fail(reader, "an event is not an object");
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_type = sj_json_is(scan, "type");
        const bool is_frame = sj_json_is(scan, "frame");
        const bool is_at = sj_json_is(scan, "at");
        SJ_TRY(sj_json_next(scan));
        if (is_type) {
            type = scan->token == SJ_JSON_STRING && scan->size == 1 ? scan->text[0] : 0;
            SJ_TRY(sj_json_skip(scan));
        } else if (is_frame) {
            SJ_TRY(read_index(reader, "frame", &frame));
        } else if (is_at) {
            SJ_TRY(read_time(reader, "at", &at));
            has_at = true;
        } else {
            SJ_TRY(sj_json_skip(scan));
        }
        SJ_TRY(sj_json_next(scan));
    }
    if ((type != 'O' && type != 'C') || frame == MOST_FRAMES || !has_at) {
        return fail(reader, "an event lacks its type (O or C), frame or time");
    }
    return add_event(reader, type, frame, at.units);
}

/* Reads one stack, outermost frame first. */
static sj_status read_stack(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    uint32_t path = 0;
    if (scan->token != SJ_JSON_ARRAY) {
        return fail(reader, "a sample is not an array");
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_ARRAY_END) {
        size_t frame = 0;
        uint32_t function;
        SJ_TRY(read_index(reader, "a frame of a sample", &frame));
        SJ_TRY(find_function(reader, frame, &function));
        SJ_TRY(sj_import_log_path(reader->log, path, function, &path));
        SJ_TRY(sj_json_next(scan));
    }
    SJ_TRY(sj_array_reserve(&reader->samples, &reader->sample_capacity, reader->sample_count, 1,
                            sizeof(*reader->samples)));
    reader->samples[reader->sample_count++].path = path;
    return SJ_OK;
}

static sj_status read_weight(file_reader *reader)
{
    sj_decimal weight;
    SJ_TRY(read_time(reader, "a weight", &weight));
    if (weight.units < 0) {
        return fail(reader, "a weight is negative");
    }
    /* The weights may come before the samples. */
    SJ_TRY(sj_array_reserve(&reader->samples, &reader->sample_capacity, reader->weight_count, 1,
                            sizeof(*reader->samples)));
    reader->samples[reader->weight_count++].weight = (uint64_t)weight.units;
    return SJ_OK;
}

static sj_status read_list(file_reader *reader, sj_status (*read)(file_reader *reader))
{
    sj_json_scan *scan = reader->scan;
    if (scan->token != SJ_JSON_ARRAY) {
        return fail(reader, "a list is not an array");
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_ARRAY_END) {
        SJ_TRY(read(reader));
        SJ_TRY(sj_json_next(scan));
    }
    return SJ_OK;
}

static sj_status end_profile(file_reader *reader)
{
    if (reader->sample_count != reader->weight_count) {
        return fail(reader, "a profile has not as many weights as samples");
    }
    for (size_t i = 0; i < reader->sample_count; i++) {
        if (reader->samples[i].path != 0) {
            SJ_TRY(sj_import_log_sample(reader->log, reader->samples[i].path, 1,
                                        reader->samples[i].weight));
        }
    }
    return SJ_OK;
}

static sj_status keep_text(const file_reader *reader, char *text, size_t *size)
{
    const sj_json_scan *scan = reader->scan;
    *size = scan->token == SJ_JSON_STRING ? scan->size : 0;
    memcpy(text, scan->text, *size);
    text[*size] = '\0';
    return *size != 0 && scan->is_cut ? fail(reader, "a name has more than 64 KB") : SJ_OK;
}

static sj_status read_profile(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    if (scan->token != SJ_JSON_OBJECT) {
        return fail(reader, "a profile is not an object");
    }
    reader->profile++;
    reader->has_thread = reader->has_unit = reader->used_unit = false;
    reader->open_count = reader->sample_count = reader->weight_count = reader->name_size = 0;
    reader->name[0] = '\0';
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        static const char *const keys[] = {"name", "unit", "events", "samples", "weights"};
        size_t key = 0;
        while (key < sizeof(keys) / sizeof(keys[0]) && !sj_json_is(scan, keys[key])) {
            key++;
        }
        SJ_TRY(sj_json_next(scan));
        if (key == 0) {
            SJ_TRY(keep_text(reader, reader->name, &reader->name_size));
            SJ_TRY(sj_json_skip(scan));
        } else if (key == 1) {
            SJ_TRY(read_unit(reader));
        } else if (key == 2) {
            SJ_TRY(read_list(reader, read_event));
        } else if (key == 3) {
            SJ_TRY(read_list(reader, read_stack));
        } else if (key == 4) {
            SJ_TRY(read_list(reader, read_weight));
        } else {
            SJ_TRY(sj_json_skip(scan));
        }
        SJ_TRY(sj_json_next(scan));
    }
    return end_profile(reader);
}

/* Reads a frame of `shared`. Its file is the module of the function. */
static sj_status read_frame(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    if (scan->token != SJ_JSON_OBJECT || reader->named_frames == MOST_FRAMES) {
        return fail(reader, "a frame is not an object, or there are too many frames");
    }
    reader->name_size = reader->file_size = 0;
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_name = sj_json_is(scan, "name");
        const bool is_file = sj_json_is(scan, "file");
        SJ_TRY(sj_json_next(scan));
        if (is_name) {
            SJ_TRY(keep_text(reader, reader->name, &reader->name_size));
        } else if (is_file) {
            SJ_TRY(keep_text(reader, reader->file_name, &reader->file_size));
        }
        SJ_TRY(sj_json_skip(scan));
        SJ_TRY(sj_json_next(scan));
    }
    const size_t frame = reader->named_frames++;
    uint32_t function;
    SJ_TRY(find_function(reader, frame, &function));
    return sj_import_log_name_function(
        reader->log, function,
        (sj_slice){.data = (const uint8_t *)reader->name, .size = reader->name_size},
        (sj_slice){.data = (const uint8_t *)reader->file_name, .size = reader->file_size});
}

static sj_status read_shared(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    if (scan->token != SJ_JSON_OBJECT) {
        return fail(reader, "\"shared\" is not an object");
    }
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_frames = sj_json_is(scan, "frames");
        SJ_TRY(sj_json_next(scan));
        SJ_TRY(is_frames ? read_list(reader, read_frame) : sj_json_skip(scan));
        SJ_TRY(sj_json_next(scan));
    }
    return SJ_OK;
}

static sj_status read_file(file_reader *reader)
{
    sj_json_scan *scan = reader->scan;
    SJ_TRY(sj_json_expect(scan, SJ_JSON_OBJECT, "an object"));
    SJ_TRY(sj_json_next(scan));
    while (scan->token != SJ_JSON_OBJECT_END) {
        const bool is_profiles = sj_json_is(scan, "profiles");
        const bool is_shared = sj_json_is(scan, "shared");
        const bool is_exporter = sj_json_is(scan, "exporter");
        SJ_TRY(sj_json_next(scan));
        if (is_exporter) {
            reader->is_ours = scan->token == SJ_JSON_STRING && sj_json_is(scan, "sojourn");
        }
        SJ_TRY(is_profiles ? read_list(reader, read_profile)
               : is_shared ? read_shared(reader)
                           : sj_json_skip(scan));
        SJ_TRY(sj_json_next(scan));
    }
    SJ_TRY(sj_json_next(scan));
    return reader->named_frames >= reader->frame_count
               ? SJ_OK
               : fail(reader, "\"shared\" has not as many frames as the profiles use");
}

static sj_status read_speedscope(sj_source *source, sj_import_log *log)
{
    file_reader reader = {.log = log};
    reader.scan = malloc(sizeof(*reader.scan));
    reader.name = malloc(NAME_BYTES + 8);
    reader.file_name = malloc(NAME_BYTES + 8);
    sj_status status = SJ_ENOMEM;
    if (reader.scan != NULL && reader.name != NULL && reader.file_name != NULL) {
        sj_json_scan_init(reader.scan, source);
        status = read_file(&reader);
    }
    sj_import_log_note(log, "the format has no build ids and no date; times count from the first "
                            "call; a function's module is its file");
    if (log->samples != 0) {
        sj_import_log_note(log, "the file has samples, not calls: each counts as one call of its "
                                "innermost function; threads are not kept");
    }
    if (reader.other_unit != NULL) {
        sj_import_log_note(log, "the unit is \"%s\": what is shown as nanoseconds is that unit",
                           reader.other_unit);
    }
    free(reader.scan);
    free(reader.name);
    free(reader.file_name);
    free(reader.functions);
    free(reader.open);
    free(reader.samples);
    return status;
}

static bool recognizes_speedscope(sj_slice head)
{
    static const char schema[] = "speedscope.app/file-format-schema.json";
    return head.size != 0 && memmem(head.data, head.size, schema, strlen(schema)) != NULL;
}

const sj_importer sj_importer_speedscope = {
    .name = "speedscope",
    .summary = "speedscope's own JSON: calls or samples",
    .recognizes = recognizes_speedscope,
    .read = read_speedscope,
};
