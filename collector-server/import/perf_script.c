/* perf-script: the text of `perf script`. A sample has a line "COMMAND [PID/]TID [[CPU]] TIME:
 * [PERIOD] EVENT:", then its frames, innermost first, one "ADDRESS SYMBOL[+OFFSET] (MODULE)" a line
 * that begins with a space, then an empty line. The weight of a sample is its period, else 1. */
#include "collector-server/import/importer.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <ctype.h>
#include <stdlib.h>

enum { LINE_BYTES = 256 * 1024, MOST_FRAMES = 64 * 1024, EVENT_BYTES = 64 };

typedef struct perf_reader {
    sj_source *source;
    sj_import_log *log;
    uint32_t *frames; /* functions of the current sample, innermost first */
    size_t frame_count, frame_capacity;
    bool in_sample;
    uint64_t weight;
    char event[EVENT_BYTES]; /* the event of the first sample, with its colon */
    bool has_events;         /* the samples are of several events */
    uint64_t without_stack;
} perf_reader;

/* Finds the time, "SECONDS.DIGITS:", in a line. Returns what follows it, or NULL. */
static char *find_time(char *line)
{
    for (char *at = line; (at = strchr(at, ':')) != NULL; at++) {
        char *digit = at;
        while (digit > line && isdigit((unsigned char)digit[-1])) {
            digit--;
        }
        const bool has_fraction = digit < at && digit > line && digit[-1] == '.';
        if (has_fraction && digit - 1 > line && isdigit((unsigned char)digit[-2])) {
            return at + 1;
        }
    }
    return NULL;
}

/* Reads the weight and the event of a sample from the rest of its line. */
static sj_status begin_sample(perf_reader *reader, char *line, uint64_t offset)
{
    char *rest = find_time(line);
    if (rest == NULL) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, offset,
                              "the line of a sample has no time: %.80s", line);
    }
    char *end = rest;
    reader->weight = strtoull(rest, &end, 10);
    if (end == rest || !isspace((unsigned char)*end)) {
        reader->weight = 1;
        end = rest;
    }
    while (isspace((unsigned char)*end)) {
        end++;
    }
    const size_t size = strcspn(end, " \t");
    if (reader->event[0] == '\0') {
        (void)snprintf(reader->event, sizeof(reader->event), "%.*s", (int)(size < 60 ? size : 60),
                       end);
    } else if (strncmp(reader->event, end, size < 60 ? size : 60) != 0) {
        reader->has_events = true;
    }
    reader->in_sample = true;
    reader->frame_count = 0;
    return SJ_OK;
}

/* Reads "ADDRESS SYMBOL[+OFFSET] (MODULE)". */
static sj_status add_frame(perf_reader *reader, char *line, uint64_t offset)
{
    char *at = line + strspn(line, " \t");
    const size_t digits = strspn(at, "0123456789abcdefABCDEF");
    char *open = strrchr(at, '(');
    char *close = strrchr(at, ')');
    if (digits == 0 || at[digits] != ' ' || open == NULL || close == NULL || close < open ||
        open < at + digits + 1 || reader->frame_count == MOST_FRAMES) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, offset,
                              "a frame is not \"ADDRESS SYMBOL (MODULE)\": %.80s", line);
    }
    char *name = at + digits + 1;
    size_t size = (size_t)(open - name);
    while (size != 0 && name[size - 1] == ' ') {
        size--;
    }
    for (size_t i = size; i > 3; i--) { /* cut "+0xOFFSET" */
        if (memcmp(name + i - 3, "+0x", 3) == 0) {
            size = i - 3;
            break;
        }
    }
    SJ_TRY(sj_array_reserve(&reader->frames, &reader->frame_capacity, reader->frame_count, 1,
                            sizeof(*reader->frames)));
    uint32_t function;
    SJ_TRY(sj_import_log_function(
        reader->log, (sj_slice){.data = (const uint8_t *)name, .size = size},
        (sj_slice){.data = (const uint8_t *)open + 1, .size = (size_t)(close - open) - 1},
        &function));
    reader->frames[reader->frame_count++] = function;
    return SJ_OK;
}

static sj_status end_sample(perf_reader *reader)
{
    uint32_t path = 0;
    if (!reader->in_sample) {
        return SJ_OK;
    }
    reader->in_sample = false;
    if (reader->frame_count == 0) {
        reader->without_stack++;
        return SJ_OK;
    }
    for (size_t i = reader->frame_count; i > 0; i--) {
        SJ_TRY(sj_import_log_path(reader->log, path, reader->frames[i - 1], &path));
    }
    return sj_import_log_sample(reader->log, path, 1, reader->weight);
}

static sj_status read_lines(perf_reader *reader, char *line)
{
    size_t size;
    bool is_line;
    uint64_t at = sj_source_offset(reader->source);
    SJ_TRY(sj_source_line(reader->source, line, LINE_BYTES, &size, &is_line));
    while (is_line) {
        if (size == 0) {
            SJ_TRY(end_sample(reader));
        } else if (line[0] == '#') {
            /* a comment */
        } else if (reader->in_sample && isspace((unsigned char)line[0])) {
            SJ_TRY(add_frame(reader, line, at));
        } else {
            SJ_TRY(end_sample(reader));
            SJ_TRY(begin_sample(reader, line, at));
        }
        at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_line(reader->source, line, LINE_BYTES, &size, &is_line));
    }
    return end_sample(reader);
}

static sj_status read_perf(sj_source *source, sj_import_log *log)
{
    perf_reader reader = {.source = source, .log = log};
    char *line = malloc(LINE_BYTES);
    const sj_status status = line != NULL ? read_lines(&reader, line) : SJ_ENOMEM;
    if (reader.event[0] != '\0') {
        sj_import_log_note(log, "the weights count the event %s they are shown as nanoseconds",
                           reader.event);
    }
    if (reader.has_events) {
        sj_import_log_note(log, "the samples are of several events, whose weights are added up");
    }
    if (reader.without_stack != 0) {
        sj_import_log_note(log, "%s had no stack and could not be imported",
                           SJ_COUNTED(reader.without_stack, "sample"));
    }
    sj_import_log_note(log, "the file has samples, not calls: each counts as one call of its "
                            "innermost function; threads are not kept");
    free(line);
    free(reader.frames);
    return status;
}

/* True if the first sample looks like one, and has a frame. */
static bool recognizes_perf(sj_slice head)
{
    char text[2048];
    const size_t size = head.size < sizeof(text) - 1 ? head.size : sizeof(text) - 1;
    memcpy(text, head.data, size);
    text[size] = '\0';
    char *line = text;
    while (*line == '#' || *line == '\n') {
        char *end = strchr(line, '\n');
        if (end == NULL) {
            return false;
        }
        line = end + 1;
    }
    char *end = strchr(line, '\n');
    if (end == NULL || strlen(text) != size) {
        return false;
    }
    *end = '\0';
    return find_time(line) != NULL && (end[1] == '\t' || end[1] == ' ');
}

const sj_importer sj_importer_perf_script = {
    .name = "perf-script",
    .summary = "the text of perf script, with stacks",
    .recognizes = recognizes_perf,
    .read = read_perf,
};
