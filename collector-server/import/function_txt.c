/* function.txt: the lines of `sojourn export` and of a live `function.txt`, one for each entry and
 * exit (export/function_txt.c says how):
 *
 *   N[SECONDS,NANOSECONDS]enter:NAME tid:TID
 *   N[SECONDS,NANOSECONDS]leave:NAMEret:RESULT tid:TID
 *
 * An exit ends the innermost open call of its thread that has its name. Calls inside of that one
 * whose exit the file does not have end with it, as unwound. */
#include "collector-server/import/importer.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <ctype.h>
#include <stdlib.h>

enum { LINE_BYTES = 64 * 1024, MOST_DEPTH = 1 << 20 };
#define NS_PER_S INT64_C(1000000000)
#define MOST_S (INT64_MAX / NS_PER_S - 1)

typedef struct open_stack {
    char **names; /* owned; with the arguments, as in the file */
    size_t count, capacity;
} open_stack;

typedef struct line_reader {
    sj_source *source;
    sj_import_log *log;
    uint64_t at;        /* offset of the line */
    open_stack *stacks; /* by thread of the log */
    size_t stack_count, stack_capacity;
    uint64_t estimates, unwound, with_values, without_thread;
} line_reader;

/* A line. `text` is the name, and the result of an exit. */
typedef struct function_line {
    bool is_entry;
    int64_t at_ns;
    int64_t tid; /* 0: unknown */
    char *text;
} function_line;

static sj_status refuse(const line_reader *reader, const char *line)
{
    return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at,
                          "this is not a whole line of a function.txt: %.80s", line);
}

/* Parses digits up to `end`. Returns what follows it, or NULL. */
static const char *read_digits(const char *text, char end, int64_t most, int64_t *number)
{
    *number = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++) {
        if (*number > (most - (*at - '0')) / 10) {
            return NULL;
        }
        *number = *number * 10 + (*at - '0');
    }
    return at != text && *at == end ? at + 1 : NULL;
}

/* Parses "N[SECONDS,NANOSECONDS]enter:" or "...leave:". Returns what follows it, or NULL. */
static const char *read_begin(const char *text, function_line *line)
{
    int64_t number;
    int64_t seconds;
    const char *at = read_digits(text, '[', INT64_MAX, &number);
    at = at != NULL ? read_digits(at, ',', MOST_S, &seconds) : NULL;
    at = at != NULL ? read_digits(at, ']', NS_PER_S - 1, &number) : NULL;
    if (at == NULL || (strncmp(at, "enter:", 6) != 0 && strncmp(at, "leave:", 6) != 0)) {
        return NULL;
    }
    line->is_entry = *at == 'e';
    line->at_ns = seconds * NS_PER_S + number;
    return at + 6;
}

/* Cuts the estimate's mark and the thread from the end of a line. */
static void read_end(line_reader *reader, char *text, size_t size, function_line *line)
{
    static const char mark[] = " ~";
    static const char thread[] = " tid:";
    if (size >= 2 && strcmp(text + size - 2, mark) == 0) {
        size -= 2;
        reader->estimates++;
    }
    text[size] = '\0';
    size_t digits = size;
    while (digits > 0 && isdigit((unsigned char)text[digits - 1])) {
        digits--;
    }
    line->tid = 0;
    if (digits < size && digits >= 5 && memcmp(text + digits - 5, thread, 5) == 0 &&
        read_digits(text + digits, '\0', UINT32_MAX, &line->tid) != NULL) {
        text[digits - 5] = '\0';
    } else {
        reader->without_thread++;
    }
    line->text = text;
}

/* Returns the length of a name without recorded arguments: up to a bracket with a value behind it.
 */
static size_t plain_size(const char *name)
{
    const size_t size = strlen(name);
    for (size_t at = 1; at + 1 < size && name[size - 1] == ')'; at++) {
        const char *value = name + at + 1 + (name[at + 1] == '-' ? 1 : 0);
        if (name[at] == '(' && (isdigit((unsigned char)*value) || *value == '"')) {
            return at;
        }
    }
    return size;
}

static sj_status find_function(line_reader *reader, const char *name, uint32_t *function)
{
    static const char values[] = "(...)";
    char text[LINE_BYTES];
    const size_t size = plain_size(name);
    const bool has_values = name[size] != '\0' && size + sizeof(values) <= sizeof(text);
    if (!has_values) {
        return sj_import_log_function(reader->log, sj_import_text(name), (sj_slice){0}, function);
    }
    reader->with_values++;
    memcpy(text, name, size);
    memcpy(text + size, values, sizeof(values));
    return sj_import_log_function(reader->log, sj_import_text(text), (sj_slice){0}, function);
}

static sj_status find_stack(line_reader *reader, uint32_t thread, open_stack **stack)
{
    if (thread >= reader->stack_count) {
        SJ_TRY(sj_array_reserve(&reader->stacks, &reader->stack_capacity, reader->stack_count,
                                thread + 1 - reader->stack_count, sizeof(*reader->stacks)));
        reader->stack_count = thread + 1;
    }
    *stack = &reader->stacks[thread];
    return SJ_OK;
}

static sj_status enter(line_reader *reader, uint32_t thread, const function_line *line)
{
    uint32_t function;
    open_stack *stack;
    SJ_TRY(find_stack(reader, thread, &stack));
    SJ_TRY(find_function(reader, line->text, &function));
    SJ_TRY(
        sj_array_reserve(&stack->names, &stack->capacity, stack->count, 1, sizeof(*stack->names)));
    if (stack->count >= MOST_DEPTH) {
        return SJ_ELIMIT;
    }
    stack->names[stack->count] = strdup(line->text);
    if (stack->names[stack->count] == NULL) {
        return SJ_ENOMEM;
    }
    stack->count++;
    return sj_import_log_enter(reader->log, thread, function, line->at_ns);
}

/* Returns the result behind a name in the text of an exit, or NULL. */
static const char *result_of(const char *text, const char *name)
{
    const size_t size = strlen(name);
    return strncmp(text, name, size) == 0 && strncmp(text + size, "ret:", 4) == 0 ? text + size + 4
                                                                                  : NULL;
}

static sj_status leave(line_reader *reader, uint32_t thread, const function_line *line)
{
    open_stack *stack;
    const char *result = NULL;
    SJ_TRY(find_stack(reader, thread, &stack));
    if (strstr(line->text, "ret:") == NULL) {
        return refuse(reader, line->text);
    }
    size_t at = stack->count;
    while (at > 0 && (result = result_of(line->text, stack->names[at - 1])) == NULL) {
        at--;
    }
    if (at == 0) {
        reader->log->unmatched_exits++;
        return SJ_OK;
    }
    while (stack->count > at) {
        free(stack->names[--stack->count]);
        reader->unwound++;
        SJ_TRY(sj_import_log_leave(reader->log, thread, line->at_ns, true));
    }
    free(stack->names[--stack->count]);
    return sj_import_log_leave(reader->log, thread, line->at_ns, result[0] == '!');
}

static sj_status read_lines(line_reader *reader, char *text)
{
    size_t size;
    bool is_line;
    reader->at = sj_source_offset(reader->source);
    SJ_TRY(sj_source_line(reader->source, text, LINE_BYTES, &size, &is_line));
    while (is_line) {
        function_line line;
        uint32_t thread;
        const char *rest = read_begin(text, &line);
        if (rest == NULL || sj_source_offset(reader->source) == reader->at + size) {
            return refuse(reader, text);
        }
        read_end(reader, text + (rest - text), size - (size_t)(rest - text), &line);
        SJ_TRY(sj_import_log_thread(reader->log, 0, line.tid, &thread));
        SJ_TRY(line.is_entry ? enter(reader, thread, &line) : leave(reader, thread, &line));
        reader->at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_line(reader->source, text, LINE_BYTES, &size, &is_line));
    }
    return SJ_OK;
}

static void add_notes(const line_reader *reader)
{
    sj_import_log_note(reader->log, "the format has no processes, modules or names of threads; "
                                    "values and results are not kept");
    if (reader->with_values != 0) {
        sj_import_log_note(reader->log, "%s had recorded arguments, shown as (...)",
                           SJ_COUNTED(reader->with_values, "entry"));
    }
    if (reader->unwound != 0) {
        sj_import_log_note(reader->log,
                           "%s had no exit line: such calls end with the call around them",
                           SJ_COUNTED(reader->unwound, "call"));
    }
    if (reader->estimates != 0) {
        sj_import_log_note(reader->log, "%s had estimated times, which are kept unmarked",
                           SJ_COUNTED(reader->estimates, "line"));
    }
    if (reader->without_thread != 0) {
        sj_import_log_note(reader->log, "%s had no thread and went to thread 0",
                           SJ_COUNTED(reader->without_thread, "line"));
    }
}

static sj_status read_function_txt(sj_source *source, sj_import_log *log)
{
    line_reader reader = {.source = source, .log = log};
    char *line = malloc(LINE_BYTES);
    const sj_status status = line != NULL ? read_lines(&reader, line) : SJ_ENOMEM;
    for (size_t i = 0; i < reader.stack_count; i++) {
        for (size_t k = 0; k < reader.stacks[i].count; k++) {
            free(reader.stacks[i].names[k]);
        }
        free(reader.stacks[i].names);
    }
    free(reader.stacks);
    free(line);
    add_notes(&reader);
    return status;
}

static bool recognizes_function_txt(sj_slice head)
{
    char text[80];
    function_line line;
    const size_t size = head.size < sizeof(text) - 1 ? head.size : sizeof(text) - 1;
    memcpy(text, head.data, size);
    text[size] = '\0';
    return read_begin(text, &line) != NULL;
}

const sj_importer sj_importer_function_txt = {
    .name = "function.txt",
    .summary = "function.txt, one line for each entry and exit",
    .recognizes = recognizes_function_txt,
    .read = read_function_txt,
};
