/* folded: one line for each call path, `outer;inner;innermost NUMBER`, the input of flame graph
 * tools. The number is the path's self time, or a count of samples. The file does not say which. */
#include "collector-server/import/importer.h"

#include <stdlib.h>

enum { LINE_BYTES = 4 * 1024 * 1024 };

/* Finds or adds the call path of a text "outer;inner;innermost". */
static sj_status find_path(sj_import_log *log, const char *text, size_t size, uint32_t *path)
{
    *path = 0;
    for (size_t at = 0; at <= size;) {
        const char *end = memchr(text + at, ';', size - at);
        const size_t bytes = end != NULL ? (size_t)(end - text) - at : size - at;
        uint32_t function;
        SJ_TRY(sj_import_log_function(log,
                                      (sj_slice){.data = (const uint8_t *)text + at, .size = bytes},
                                      (sj_slice){0}, &function));
        SJ_TRY(sj_import_log_path(log, *path, function, path));
        at += bytes + 1;
    }
    return SJ_OK;
}

/* Parses the digits at the end of a line. Returns the length of the path before them, or 0. */
static size_t read_number(const char *line, size_t size, uint64_t *number)
{
    size_t at = size;
    while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9') {
        at--;
    }
    *number = 0;
    for (size_t i = at; i < size; i++) {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(line[i] - '0'), number)) {
            return 0;
        }
    }
    return at < size && at > 1 && line[at - 1] == ' ' ? at - 1 : 0;
}

static sj_status read_lines(sj_source *source, sj_import_log *log, char *line)
{
    size_t size;
    bool is_line;
    uint64_t at = sj_source_offset(source);
    SJ_TRY(sj_source_line(source, line, LINE_BYTES, &size, &is_line));
    while (is_line) {
        uint64_t number;
        uint32_t path;
        const size_t bytes = read_number(line, size, &number);
        if (bytes == 0 && size != 0) {
            return sj_source_fail(source, SJ_ECORRUPT, at,
                                  "a line is not \"outer;inner NUMBER\": %.60s", line);
        }
        if (size != 0) {
            SJ_TRY(find_path(log, line, bytes, &path));
            SJ_TRY(sj_import_log_sample(log, path, 1, number));
        }
        at = sj_source_offset(source);
        SJ_TRY(sj_source_line(source, line, LINE_BYTES, &size, &is_line));
    }
    return SJ_OK;
}

static sj_status read_folded(sj_source *source, sj_import_log *log)
{
    char *line = malloc(LINE_BYTES);
    const sj_status status = line != NULL ? read_lines(source, log, line) : SJ_ENOMEM;
    free(line);
    sj_import_log_note(log, "the format has sums of call paths only: no calls, threads, modules "
                            "or dates; each line counts as one call");
    sj_import_log_note(log, "the file does not say what its numbers are: they are taken as "
                            "nanoseconds of self time");
    return status;
}

static bool recognizes_folded(sj_slice head)
{
    const uint8_t *end = memchr(head.data, '\n', head.size);
    const size_t size = end != NULL ? (size_t)(end - head.data) : head.size;
    uint64_t number;
    return size != 0 && head.data[0] != '#' &&
           read_number((const char *)head.data, size, &number) != 0 &&
           memchr(head.data, 0, size) == NULL;
}

const sj_importer sj_importer_folded = {
    .name = "folded",
    .summary = "folded stacks of flame graph tools",
    .recognizes = recognizes_folded,
    .read = read_folded,
};
