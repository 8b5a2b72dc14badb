#include "agent/registry/source_lines.h"

#include "agent/session/json_report.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS_MAX = 8 * 1024 * 1024,
    NUMBER_BYTES = 12, /* upper bound of a number in JSON */
    PAYLOAD_BYTES = SJ_REPORT_MAX_BYTES - 32 * 1024,
    COMPARISONS_MAX = 1 << 28 /* limit on comparisons of file names */
};

typedef enum point_state { POINT_NOT_ENTERED, POINT_ENTERED, POINT_REPORTED } point_state;

typedef struct source_point {
    uint32_t token;
    uint32_t offset;
    uint32_t line;
    uint32_t file : 30; /* index in the file names */
    uint32_t state : 2; /* point_state */
} source_point;

struct sj_source_lines {
    source_point *points; /* ordered by token and offset */
    size_t count, capacity;
    char **files;
    size_t file_count, file_capacity;
    uint32_t comparisons;
};

void sj_source_lines_free(sj_source_lines *lines)
{
    if (lines != NULL) {
        for (size_t i = 0; i < lines->file_count; i++) {
            free(lines->files[i]);
        }
        free(lines->files);
        free(lines->points);
        free(lines);
    }
}

/* Finds or adds a file name. Points of one file usually follow each other, so the search starts at
 * the last file. After COMPARISONS_MAX it returns SJ_ELIMIT, and the caller keeps the points read
 * so far. */
static sj_status find_file(sj_source_lines *lines, const char *name, uint32_t *place)
{
    for (size_t i = lines->file_count; i-- > 0;) {
        if (lines->comparisons++ == COMPARISONS_MAX) {
            return SJ_ELIMIT;
        }
        if (strcmp(lines->files[i], name) == 0) {
            *place = (uint32_t)i;
            return SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&lines->files, &lines->file_capacity, lines->file_count, 1,
                            sizeof(*lines->files)));
    char *copy = strdup(name);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    *place = (uint32_t)lines->file_count;
    lines->files[lines->file_count++] = copy;
    return SJ_OK;
}

static sj_status add_point(void *context, const sj_container_line *line)
{
    enum { FILES_MAX = 100000 };
    sj_source_lines *lines = context;
    uint32_t file = 0;
    if (lines->count == POINTS_MAX || lines->file_count == FILES_MAX) {
        return SJ_ELIMIT;
    }
    SJ_TRY(find_file(lines, line->file, &file));
    SJ_TRY(sj_array_reserve(&lines->points, &lines->capacity, lines->count, 1,
                            sizeof(*lines->points)));
    lines->points[lines->count++] = (source_point){.token = line->token,
                                                   .offset = line->offset,
                                                   .line = line->line,
                                                   .file = file & 0x3fffffff};
    return SJ_OK;
}

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static uint64_t place_of(const source_point *point)
{
    return (uint64_t)point->token << 32 | point->offset;
}

static int compare_places(const void *left, const void *right)
{
    return compare_numbers(place_of(left), place_of(right));
}

sj_status sj_source_lines_new(sj_source_lines **lines)
{
    *lines = calloc(1, sizeof(**lines));
    return *lines != NULL ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_source_lines_add(sj_source_lines *lines, const sj_container_line *line)
{
    return add_point(lines, line);
}

void sj_source_lines_sort(sj_source_lines *lines)
{
    qsort(lines->points, lines->count, sizeof(*lines->points), compare_places);
}

bool sj_source_lines_is_empty(const sj_source_lines *lines)
{
    return lines->count == 0;
}

sj_status sj_source_lines_read(const sj_runtime *runtime, const char *path, sj_slice id,
                               sj_source_lines **lines)
{
    if (runtime->read_container_lines == NULL) {
        return SJ_ENOTFOUND;
    }
    sj_source_lines *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = runtime->read_container_lines(path, id, add_point, made);
    if ((status != SJ_OK && status != SJ_ELIMIT) || made->count == 0) {
        sj_source_lines_free(made);
        return status == SJ_ENOMEM ? SJ_ENOMEM : SJ_ENOTFOUND;
    }
    qsort(made->points, made->count, sizeof(*made->points), compare_places);
    *lines = made;
    return SJ_OK;
}

void sj_source_lines_enter(sj_source_lines *lines, uint32_t token, uint32_t offset)
{
    const uint64_t wanted = (uint64_t)token << 32 | offset;
    const size_t low = SJ_BISECT(0, lines->count, i, place_of(&lines->points[i]) <= wanted);
    if (low != 0 && lines->points[low - 1].token == token &&
        lines->points[low - 1].state == POINT_NOT_ENTERED) {
        lines->points[low - 1].state = POINT_ENTERED;
    }
}

/* The report under construction: lines of one file. */
typedef struct lines_report {
    const sj_source_lines *lines;
    sj_source_lines_kind kind;
    sj_frame_writer *writer;
    uint32_t module;
    uint64_t now_ticks;
    json_t *methods; /* each [token, line, ...] */
    json_t *method;  /* the last one; borrowed */
    size_t bytes;    /* upper bound of the size of the methods as text */
    uint32_t reports;
} lines_report;

/* Returns a name as JSON. In a name that is not UTF-8, each non-ASCII byte becomes '?'. */
static json_t *name_as_json(const char *name)
{
    json_t *text = json_string(name);
    char *copy = text == NULL ? strdup(name) : NULL;
    for (char *at = copy; at != NULL && *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    }
    text = copy != NULL ? json_string(copy) : text;
    free(copy);
    return text;
}

static sj_status send_methods(lines_report *report, const char *file)
{
    json_t *payload = json_pack("{s:I, s:o, s:o}", "module", (json_int_t)report->module, "file",
                                name_as_json(file), "methods", report->methods);
    const sj_report sent = {.ticks = report->now_ticks,
                            .monitor = "lines",
                            .kind = report->kind == SJ_SOURCE_LINES_THERE ? "there" : "entered"};
    report->methods = NULL;
    report->method = NULL;
    report->reports++;
    return sj_json_report_send(report->writer, sent, payload);
}

static sj_status begin_method(lines_report *report, uint32_t token)
{
    if (report->methods == NULL) {
        report->methods = json_array();
        report->bytes = 0;
    }
    report->method = json_array();
    report->bytes += NUMBER_BYTES;
    const bool is_added =
        report->method != NULL && json_array_append_new(report->methods, report->method) == 0 &&
        json_array_append_new(report->method, json_integer((json_int_t)token)) == 0;
    return is_added ? SJ_OK : SJ_ENOMEM;
}

/* Orders points by file, method and line. */
static int compare_files(const void *left, const void *right)
{
    const source_point *a = left;
    const source_point *b = right;
    const int order =
        compare_numbers((uint64_t)a->file << 32 | a->token, (uint64_t)b->file << 32 | b->token);
    return order != 0 ? order : compare_numbers(a->line, b->line);
}

static sj_status send_points(lines_report *report, const source_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const source_point *at = &points[i];
        const bool is_new_file = i == 0 || at->file != at[-1].file;
        if (!is_new_file && at->token == at[-1].token && at->line == at[-1].line) {
            continue;
        }
        if (report->methods != NULL && (is_new_file || report->bytes > PAYLOAD_BYTES)) {
            SJ_TRY(send_methods(report, report->lines->files[at[-1].file]));
        }
        if (report->methods == NULL || at->token != at[-1].token) {
            SJ_TRY(begin_method(report, at->token));
        }
        report->bytes += NUMBER_BYTES;
        if (json_array_append_new(report->method, json_integer((json_int_t)at->line)) != 0) {
            return SJ_ENOMEM;
        }
    }
    return count == 0 ? SJ_OK : send_methods(report, report->lines->files[points[count - 1].file]);
}

/* Sends the last report, with an empty file name: it says that all entered lines were reported.
 * Without it, some reports of the module may be missing. */
static sj_status send_end(lines_report *report)
{
    report->methods = json_array();
    return send_methods(report, "");
}

/* Copies the points that a report contains. Marks entered ones as reported. */
static size_t copy_points(sj_source_lines *lines, sj_source_lines_kind kind, source_point *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++) {
        source_point *point = &lines->points[i];
        if (kind == SJ_SOURCE_LINES_THERE || point->state == POINT_ENTERED) {
            chosen[count++] = *point;
        }
        if (kind == SJ_SOURCE_LINES_ENTERED && point->state == POINT_ENTERED) {
            point->state = POINT_REPORTED;
        }
    }
    qsort(chosen, count, sizeof(*chosen), compare_files);
    return count;
}

/* Marks reported points as entered again, so that the next report includes points that did not fit
 * into the spool. */
static void mark_unreported(sj_source_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->points[i].state == POINT_REPORTED) {
            lines->points[i].state = POINT_ENTERED;
        }
    }
}

sj_status sj_source_lines_report(sj_source_lines *lines, sj_source_lines_kind kind,
                                 sj_frame_writer *writer, uint32_t module, uint64_t now_ticks)
{
    lines_report report = {
        .lines = lines, .kind = kind, .writer = writer, .module = module, .now_ticks = now_ticks};
    source_point *chosen = malloc(lines->count * sizeof(*chosen));
    if (chosen == NULL) {
        return SJ_ENOMEM;
    }
    const size_t count = copy_points(lines, kind, chosen);
    sj_status status = send_points(&report, chosen, count);
    if (status == SJ_OK && kind == SJ_SOURCE_LINES_ENTERED) {
        status = send_end(&report);
    }
    if (status != SJ_OK && kind == SJ_SOURCE_LINES_ENTERED) {
        mark_unreported(lines);
    }
    json_decref(report.methods);
    free(chosen);
    return status;
}
