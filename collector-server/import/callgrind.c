/* callgrind: the profile of valgrind's callgrind, of other tools for KCachegrind, and of `sojourn
 * export` (https://valgrind.org/docs/manual/cl-format.html). The file has costs of functions and of
 * pairs of caller and callee. The first event is the cost. Functions of the same name and object
 * are one function. */
#include "collector-server/import/call_pairs.h"
#include "collector-server/import/importer.h"
#include "proto/base/array.h"

#include <ctype.h>
#include <stdlib.h>

enum { LINE_BYTES = 64 * 1024, EVENT_BYTES = 32, MOST_NAMES = 1 << 20, MOST_POSITIONS = 2 };

/* Names that a number in brackets stands for. */
typedef struct name_table {
    char **names; /* by number; NULL: not defined */
    size_t capacity;
} name_table;

typedef struct callgrind_reader {
    sj_source *source;
    sj_import_log *log;
    uint64_t at; /* offset of the line */
    name_table objects, functions;
    char *object, *callee_object; /* owned; NULL: unknown */
    uint32_t function, callee;    /* 0: none yet */
    sj_call_pairs pairs;
    int position_count;
    uint64_t calls;
    bool after_calls; /* the next line has the cost of the calls */
    bool has_events, has_more_events;
    bool is_summed;        /* the writer is known to write the sum of all own costs */
    uint64_t summary, own; /* sums of the costs, by the header and by the functions */
    char event[EVENT_BYTES];
} callgrind_reader;

static sj_status refuse(const callgrind_reader *reader, const char *what, const char *line)
{
    return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at, "%s: %.60s", what, line);
}

static sj_status replace_text(char **text, const char *by)
{
    char *copy = strdup(by);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    free(*text);
    *text = copy;
    return SJ_OK;
}

/* Reads "NAME", "(NUMBER) NAME" or "(NUMBER)". The name is borrowed. */
static sj_status read_name(callgrind_reader *reader, name_table *table, const char *text,
                           const char **name)
{
    char *end;
    *name = text;
    if (text[0] != '(' || !isdigit((unsigned char)text[1])) {
        return SJ_OK;
    }
    const unsigned long long number = strtoull(text + 1, &end, 10);
    if (*end != ')') {
        return SJ_OK;
    }
    if (number >= MOST_NAMES) {
        return sj_source_fail(reader->source, SJ_ELIMIT, reader->at,
                              "the number of a name is larger than %d", MOST_NAMES);
    }
    const char *given = end + 1 + strspn(end + 1, " ");
    if (number >= table->capacity) {
        SJ_TRY(sj_array_reserve(&table->names, &table->capacity, table->capacity,
                                (size_t)number + 1 - table->capacity, sizeof(*table->names)));
    }
    if (*given != '\0') {
        SJ_TRY(replace_text(&table->names[number], given));
    }
    *name = table->names[number];
    return *name != NULL ? SJ_OK : refuse(reader, "the number has no name yet", text);
}

static sj_status read_function(callgrind_reader *reader, const char *text, const char *object,
                               uint32_t *function)
{
    const char *name;
    SJ_TRY(read_name(reader, &reader->functions, text, &name));
    return sj_import_log_function(reader->log, sj_import_text(name), sj_import_text(object),
                                  function);
}

static sj_status read_object(callgrind_reader *reader, const char *text, char **object)
{
    const char *name;
    SJ_TRY(read_name(reader, &reader->objects, text, &name));
    return replace_text(object, name);
}

/* Reads "COUNT POSITION...". */
static sj_status read_calls(callgrind_reader *reader, const char *text)
{
    char *end;
    if (reader->function == 0 || reader->callee == 0 || !isdigit((unsigned char)text[0])) {
        return refuse(reader, "this is not a number of calls from a function", text);
    }
    reader->calls = strtoull(text, &end, 10);
    reader->after_calls = true;
    return SJ_OK;
}

/* Skips a position: a number, "+NUMBER", "-NUMBER" or "*". Returns NULL if there is none. */
static const char *skip_position(const char *text)
{
    const char *at = text + (*text == '+' || *text == '-' ? 1 : 0);
    if (*text == '*') {
        at++;
    } else if (at[0] == '0' && at[1] == 'x') {
        at += 2 + strspn(at + 2, "0123456789abcdefABCDEF");
    } else {
        const size_t digits = strspn(at, "0123456789");
        at = digits != 0 ? at + digits : text;
    }
    return at == text || (*at != '\0' && *at != ' ') ? NULL : at + strspn(at, " ");
}

/* Reads a line of positions and costs, which belongs to the function or to the calls before it. */
static sj_status read_cost(callgrind_reader *reader, const char *line)
{
    const char *at = line;
    for (int i = 0; i < reader->position_count && at != NULL; i++) {
        at = skip_position(at);
    }
    if (at == NULL || (*at != '\0' && !isdigit((unsigned char)*at))) {
        return refuse(reader, "this is not a line of costs", line);
    }
    if (reader->function == 0 || !reader->has_events) {
        return refuse(reader, "costs before a function or before their events", line);
    }
    const uint64_t cost = strtoull(at, NULL, 10);
    if (!reader->after_calls) {
        reader->own += cost;
        return sj_call_pairs_add_own(&reader->pairs, reader->function, cost);
    }
    reader->after_calls = false;
    const uint32_t callee = reader->callee;
    reader->callee = 0;
    free(reader->callee_object);
    reader->callee_object = NULL;
    return sj_call_pairs_add_calls(&reader->pairs, reader->function, callee, reader->calls, cost);
}

static sj_status read_positions(callgrind_reader *reader, const char *text)
{
    reader->position_count = 0;
    while (*text != '\0') {
        reader->position_count++;
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return reader->position_count >= 1 && reader->position_count <= MOST_POSITIONS
               ? SJ_OK
               : refuse(reader, "the positions of costs are unknown", text);
}

static void read_events(callgrind_reader *reader, const char *text)
{
    const size_t size = strcspn(text, " ");
    reader->has_events = size != 0;
    reader->has_more_events = text[size] != '\0' && text[size + strspn(text + size, " ")] != '\0';
    (void)snprintf(reader->event, sizeof(reader->event), "%.*s", (int)size, text);
}

/* Returns the value of a line "KEY=VALUE" or "KEY: VALUE", or NULL. */
static const char *value_of(const char *line, const char *key)
{
    const size_t size = strlen(key);
    return strncmp(line, key, size) == 0 ? line + size + strspn(line + size, " ") : NULL;
}

static bool is_cost(const char *line)
{
    return isdigit((unsigned char)line[0]) || strchr("+-*", line[0]) != NULL;
}

static sj_status read_line(callgrind_reader *reader, const char *line)
{
    const char *value;
    if ((value = value_of(line, "fn=")) != NULL) {
        return read_function(reader, value, reader->object, &reader->function);
    }
    if ((value = value_of(line, "cfn=")) != NULL) {
        return read_function(reader, value,
                             reader->callee_object != NULL ? reader->callee_object : reader->object,
                             &reader->callee);
    }
    if ((value = value_of(line, "ob=")) != NULL) {
        return read_object(reader, value, &reader->object);
    }
    if ((value = value_of(line, "cob=")) != NULL) {
        return read_object(reader, value, &reader->callee_object);
    }
    if ((value = value_of(line, "calls=")) != NULL) {
        return read_calls(reader, value);
    }
    if ((value = value_of(line, "positions:")) != NULL) {
        return read_positions(reader, value);
    }
    if ((value = value_of(line, "events:")) != NULL) {
        read_events(reader, value);
        return SJ_OK;
    }
    if ((value = value_of(line, "creator:")) != NULL) {
        reader->is_summed = strncmp(value, "callgrind-", 10) == 0 || strcmp(value, "sojourn") == 0;
        return SJ_OK;
    }
    if ((value = value_of(line, "summary:")) != NULL) {
        reader->summary += strtoull(value, NULL, 10);
        return SJ_OK;
    }
    return is_cost(line) ? read_cost(reader, line) : SJ_OK;
}

/* True for a line that has a key and that the importer does not use: files, jumps, headers. */
static bool is_ignored(const char *line)
{
    const size_t size = strcspn(line, "=: ");
    return line[0] == '#' ||
           (isalpha((unsigned char)line[0]) && line[size] != '\0' && line[size] != ' ');
}

static sj_status read_lines(callgrind_reader *reader, char *line)
{
    size_t size;
    bool is_line = true;
    while (is_line) {
        reader->at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_line(reader->source, line, LINE_BYTES, &size, &is_line));
        if (!is_line || size == 0) {
            continue;
        }
        SJ_TRY(is_cost(line) || is_ignored(line)
                   ? read_line(reader, line)
                   : refuse(reader, "this is not a line of a callgrind file", line));
    }
    if (reader->after_calls) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at,
                              "the file ends before the cost of a call");
    }
    return reader->is_summed && reader->own != reader->summary
               ? sj_source_fail(reader->source, SJ_ECORRUPT, reader->at,
                                "the costs add up to %llu, but the file says %llu: it is cut or "
                                "damaged",
                                (unsigned long long)reader->own,
                                (unsigned long long)reader->summary)
               : SJ_OK;
}

static void free_names(name_table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        free(table->names[i]);
    }
    free(table->names);
}

static void add_notes(const callgrind_reader *reader)
{
    sj_import_log_note(reader->log, "the format has pairs of caller and callee, not calls: call "
                                    "paths are estimated from the costs of the pairs");
    if (strcmp(reader->event, "ns") != 0) {
        sj_import_log_note(reader->log,
                           "the costs count the event %s: they are shown as nanoseconds",
                           reader->event);
    }
    if (reader->has_more_events) {
        sj_import_log_note(reader->log, "events after the first one were left out");
    }
}

static sj_status read_callgrind(sj_source *source, sj_import_log *log)
{
    callgrind_reader reader = {.source = source, .log = log, .position_count = 1};
    char *line = malloc(LINE_BYTES);
    sj_status status = line != NULL ? read_lines(&reader, line) : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_call_pairs_store(&reader.pairs, log);
        add_notes(&reader);
    }
    sj_call_pairs_deinit(&reader.pairs);
    free_names(&reader.objects);
    free_names(&reader.functions);
    free(reader.object);
    free(reader.callee_object);
    free(line);
    return status;
}

static bool recognizes_callgrind(sj_slice head)
{
    static const char *const begins[] = {"# callgrind format", "version: 1\n", "version:1\n"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        const size_t size = strlen(begins[i]);
        if (head.size >= size && memcmp(head.data, begins[i], size) == 0) {
            return true;
        }
    }
    return false;
}

const sj_importer sj_importer_callgrind = {
    .name = "callgrind",
    .summary = "profiles of valgrind's callgrind",
    .recognizes = recognizes_callgrind,
    .read = read_callgrind,
};
