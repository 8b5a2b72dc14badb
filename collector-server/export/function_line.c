#include "collector-server/export/function_line.h"

#include <stdio.h>
#include <string.h>

enum { ARGUMENTS = 64, VALUE_BYTES = 512 };

/* A text that is cut at its capacity. */
typedef struct cut_text {
    char *text;
    size_t used, capacity;
} cut_text;

static void add_bytes(cut_text *to, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && to->used + 1 < to->capacity; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        to->text[to->used++] = byte < 0x20 || byte == 0x7f ? ' ' : bytes[i];
    }
    to->text[to->used] = '\0';
}

static void add(cut_text *to, const char *text)
{
    add_bytes(to, text, strlen(text));
}

sj_status sj_function_values_open(sqlite3 *database, int64_t session_id, sj_function_values *values,
                                  sj_error *error)
{
    static const char any[] = "SELECT 1 FROM arguments WHERE session_id = ?1 LIMIT 1";
    static const char of_call[] =
        "SELECT position, value, note, kind FROM arguments WHERE session_id = ?1 AND call_id = ?2 "
        "ORDER BY position, rule";
    sqlite3_stmt *row = NULL;
    *values = (sj_function_values){.session_id = session_id};
    if (sqlite3_prepare_v2(database, any, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the values: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    const bool has_values = sqlite3_step(row) == SQLITE_ROW;
    sqlite3_finalize(row);
    if (has_values &&
        sqlite3_prepare_v2(database, of_call, -1, &values->select, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the values: %s", sqlite3_errmsg(database));
    }
    return SJ_OK;
}

void sj_function_values_close(sj_function_values *values)
{
    sqlite3_finalize(values->select);
    values->select = NULL;
}

/* A value as text; texts in quotes. */
static void write_value(sqlite3_stmt *row, char text[VALUE_BYTES])
{
    cut_text to = {.text = text, .capacity = VALUE_BYTES};
    const char *value = (const char *)sqlite3_column_text(row, 1);
    const char *note = (const char *)sqlite3_column_text(row, 2);
    text[0] = '\0';
    if (value == NULL) {
        add(&to, note != NULL ? note : "null");
        return;
    }
    const int type = sqlite3_column_type(row, 1);
    const char *kind = (const char *)sqlite3_column_text(row, 3);
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT || strcmp(kind, "object") == 0 ||
        strcmp(kind, "thrown") == 0) {
        add(&to, value);
        add(&to, note != NULL ? "..." : "");
        return;
    }
    to.capacity--; /* for the quote at the end */
    add(&to, "\"");
    for (; *value != '\0'; value++) {
        add(&to, *value == '"' || *value == '\\' ? "\\" : "");
        add_bytes(&to, value, 1);
    }
    add(&to, note != NULL ? "..." : "");
    to.capacity++;
    add(&to, "\"");
}

/* The bytes of a type in a list: up to the next comma outside of brackets, or the list's end. */
static size_t type_bytes(const char *types)
{
    int depth = 0;
    size_t bytes = 0;
    for (; types[bytes] != '\0'; bytes++) {
        const char sign = types[bytes];
        if (depth == 0 && (sign == ',' || sign == ')')) {
            break;
        }
        depth += sign == '<' || sign == '[' || sign == '(' ? 1 : 0;
        depth -= sign == '>' || sign == ']' || sign == ')' ? 1 : 0;
    }
    return bytes;
}

/* Arguments that were recorded, by position from 1. */
typedef struct argument_list {
    char values[ARGUMENTS][VALUE_BYTES];
    bool is_known[ARGUMENTS];
    int last;
} argument_list;

static void write_name(const char *name, const argument_list *arguments, cut_text *to)
{
    const char *open = strrchr(name, '(');
    const char *types = open != NULL ? open + 1 : "";
    add_bytes(to, name, open != NULL ? (size_t)(open - name) : strlen(name));
    add(to, "(");
    for (int i = 1; *types != ')' && *types != '\0' ? true : i <= arguments->last; i++) {
        const size_t bytes = type_bytes(types);
        add(to, i > 1 ? "," : "");
        if (i < ARGUMENTS && arguments->is_known[i]) {
            add(to, arguments->values[i]);
        } else {
            add_bytes(to, bytes != 0 ? types : "?", bytes != 0 ? bytes : 1);
        }
        types += bytes;
        types += *types == ',' ? 1 : 0;
    }
    add(to, ")");
}

/* Returns whether there was a result; the last of several rules' rows counts: they are equal. */
static bool read_values(const sj_function_values *values, int64_t call_id, argument_list *arguments,
                        char result[VALUE_BYTES])
{
    bool has_result = false;
    sqlite3_bind_int64(values->select, 1, values->session_id);
    sqlite3_bind_int64(values->select, 2, call_id);
    while (sqlite3_step(values->select) == SQLITE_ROW) {
        const int position = sqlite3_column_int(values->select, 0);
        if (position == 0) {
            write_value(values->select, result);
            has_result = true;
        } else if (position > 0 && position < ARGUMENTS) {
            write_value(values->select, arguments->values[position]);
            arguments->is_known[position] = true;
            arguments->last = position > arguments->last ? position : arguments->last;
        }
    }
    sqlite3_reset(values->select);
    return has_result;
}

void sj_function_line_make(const sj_function_values *values, int64_t call_id, const char *name,
                           const char *ending, sj_function_line *line)
{
    argument_list arguments;
    char recorded[VALUE_BYTES];
    cut_text to = {.text = line->name, .capacity = sizeof(line->name)};
    cut_text result = {.text = line->result, .capacity = sizeof(line->result)};
    name = name != NULL ? name : "(unknown function)";
    line->name[0] = '\0';
    line->result[0] = '\0';
    memset(arguments.is_known, 0, sizeof(arguments.is_known));
    arguments.last = 0;
    const bool has_result =
        values->select != NULL && read_values(values, call_id, &arguments, recorded);
    if (arguments.last != 0) {
        write_name(name, &arguments, &to);
    } else {
        add(&to, name);
    }
    const bool is_unwound = strcmp(ending, "unwound") == 0;
    add(&result, is_unwound && has_result ? "!" : "");
    add(&result, is_unwound                         ? (has_result ? recorded : "!")
                 : strcmp(ending, "truncated") == 0 ? "?"
                 : has_result                       ? recorded
                                                    : "0");
}
