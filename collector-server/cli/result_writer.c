#include "collector-server/cli/result_writer.h"

#include "collector-server/cli/json_output.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/export/json_text.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_LAST = 12 }; /* minimum width of the last column */

void sj_result_writer_init(sj_result_writer *writer, FILE *output, sj_result_format format)
{
    *writer = (sj_result_writer){.output = output, .format = format};
}

static void write_csv(FILE *output, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        fputs(text, output);
        return;
    }
    fputc('"', output);
    for (; *text != '\0'; ++text) {
        if (*text == '"') {
            fputc('"', output);
        }
        fputc(*text, output);
    }
    fputc('"', output);
}

static void write_markdown(FILE *output, const char *text)
{
    for (; *text != '\0'; ++text) {
        if (*text == '|' || *text == '\\') {
            fputc('\\', output);
        }
        fputc(*text == '\n' ? ' ' : *text, output);
    }
}

static void write_cell(const sj_result_writer *writer, const char *text, int column, bool last)
{
    if (writer->widths[column] < 0) {
        return;
    }
    const int limit = writer->wide ? INT32_MAX : writer->widths[column];
    const int width = sj_text_width(text);
    const bool cut = width > limit && !(last && writer->wide);
    const size_t bytes = cut ? sj_text_cut(text, limit - 1) : strlen(text);
    const int shown = cut ? sj_text_width(text) : width;
    const int padding = writer->widths[column] - (cut ? limit : shown);
    if (writer->numeric[column]) {
        fprintf(writer->output, "%*s", padding > 0 ? padding : 0, "");
    }
    sj_text_write(writer->output, text, bytes);
    if (cut) {
        fputs("\xe2\x80\xa6", writer->output);
    }
    if (!writer->numeric[column] && !last) {
        fprintf(writer->output, "%*s", padding > 0 ? padding : 0, "");
    }
    fputs(last ? "\n" : "  ", writer->output);
}

/* Returns the width of all columns before the last, with the spaces after them. */
static int used_before_last(const sj_result_writer *writer)
{
    int used = 0;
    for (int column = 0; column + 1 < writer->columns; column++) {
        used += writer->widths[column] < 0 ? 0 : writer->widths[column] + 2;
    }
    return used;
}

/* Hides columns in the order of hidden_first until the row fits the terminal. If the row is still
 * too wide, narrows the last column to the rest of the line, but at least to LEAST_LAST. */
static void fit(sj_result_writer *writer)
{
    const int last = writer->columns - 1;
    const char *const *next = writer->hidden_first;
    if (writer->space == 0 || writer->wide || next == NULL) {
        return;
    }
    for (; *next != NULL && used_before_last(writer) + writer->widths[last] > writer->space;
         next++) {
        for (int column = 0; column < last; column++) {
            const char *name = writer->held[column];
            if (name != NULL && fnmatch(*next, name, 0) == 0) {
                writer->widths[column] = -1;
            }
        }
    }
    const int left = writer->space - used_before_last(writer);
    const int least = left < LEAST_LAST ? LEAST_LAST : left;
    writer->widths[last] = writer->widths[last] > least ? least : writer->widths[last];
}

static void write_held(sj_result_writer *writer)
{
    if (writer->held_rows != 0) {
        fit(writer);
    }
    if (writer->terminal != NULL) {
        sj_terminal_page(writer->terminal);
    }
    for (size_t row = 0; row < writer->held_rows; ++row) {
        for (int column = 0; column < writer->columns; ++column) {
            char *text = writer->held[row * (size_t)writer->columns + (size_t)column];
            write_cell(writer, text != NULL ? text : "", column, column + 1 == writer->columns);
            free(text);
        }
    }
    writer->held_rows = 0;
    writer->aligned = true;
}

static const char *cell_text(sqlite3_stmt *statement, int column, bool values, char *buffer,
                             size_t size)
{
    if (!values) {
        return sqlite3_column_name(statement, column);
    }
    if (sqlite3_column_type(statement, column) == SQLITE_BLOB) {
        snprintf(buffer, size, "(%d bytes)", sqlite3_column_bytes(statement, column));
        return buffer;
    }
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text != NULL ? text : "";
}

/* True if the text looks like a result of format_duration. Such texts are aligned like numbers. */
static bool is_duration(const char *text)
{
    const char *unit = strrchr(text, ' ');
    static const char *const units[] = {" ns", " us", " ms", " s", " min"};
    for (size_t i = 0; unit != NULL && i < sizeof(units) / sizeof(units[0]); ++i) {
        if (strcmp(unit, units[i]) == 0) {
            return text[strspn(text, "-0123456789")] != text[0];
        }
    }
    return false;
}

static void table_row(sj_result_writer *writer, sqlite3_stmt *statement, bool values)
{
    char buffer[40];
    for (int column = 0; column < writer->columns; ++column) {
        const char *text = cell_text(statement, column, values, buffer, sizeof(buffer));
        if (writer->aligned) {
            write_cell(writer, text, column, column + 1 == writer->columns);
            continue;
        }
        char *copy = strdup(text);
        writer->failed |= copy == NULL;
        writer->held[writer->held_rows * (size_t)writer->columns + (size_t)column] = copy;
        int width = sj_text_width(text);
        width = width > SJ_RESULT_MAX_WIDTH && !writer->wide ? SJ_RESULT_MAX_WIDTH : width;
        if (width > writer->widths[column]) {
            writer->widths[column] = width;
        }
        const int type = values ? sqlite3_column_type(statement, column) : SQLITE_NULL;
        writer->numeric[column] &=
            (type != SQLITE_TEXT || is_duration(text)) && type != SQLITE_BLOB;
    }
    if (!writer->aligned && ++writer->held_rows == SJ_RESULT_ALIGNED_ROWS) {
        write_held(writer);
    }
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

/* True for columns whose numbers may be greater than 2^53: ids of calls (first_call_id, ...), ids
 * of paths, and calendar times. All numbers of such a column are written as strings. */
static bool is_long_number(const char *name)
{
    return ends_with(name, "call_id") || ends_with(name, "realtime_ns") ||
           strcmp(name, "parent_id") == 0 || strcmp(name, "tail_caller_id") == 0 ||
           strcmp(name, "physical_parent_id") == 0 || strcmp(name, "path_id") == 0 ||
           strcmp(name, "parent_path_id") == 0;
}

static void json_value(FILE *output, sqlite3_stmt *statement, int column)
{
    static const int64_t exact = INT64_C(1) << 53;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: {
        const int64_t number = sqlite3_column_int64(statement, column);
        const char *quote = number > exact || number < -exact ||
                                    is_long_number(sqlite3_column_name(statement, column))
                                ? "\""
                                : "";
        fprintf(output, "%s%lld%s", quote, (long long)number, quote);
        break;
    }
    case SQLITE_FLOAT: {
        const double number = sqlite3_column_double(statement, column);
        if (number - number == 0) {
            fprintf(output, "%.17g", number);
        } else {
            fputs("null", output); /* JSON has no infinity */
        }
        break;
    }
    case SQLITE_TEXT:
        sj_json_text(output, (const char *)sqlite3_column_text(statement, column));
        break;
    case SQLITE_BLOB: {
        const unsigned char *bytes = sqlite3_column_blob(statement, column);
        fputc('"', output);
        for (int i = 0; i < sqlite3_column_bytes(statement, column); ++i) {
            fprintf(output, "%02x", bytes[i]);
        }
        fputc('"', output);
        break;
    }
    default:
        fputs("null", output);
    }
}

static void json_row(sj_result_writer *writer, sqlite3_stmt *statement, bool values)
{
    if (!values) {
        fputs(SJ_JSON_ROWS_BEGIN, writer->output);
        return;
    }
    fputs(writer->rows == 0 ? "\n  {" : ",\n  {", writer->output);
    for (int column = 0; column < writer->columns; ++column) {
        fputs(column == 0 ? "" : ", ", writer->output);
        sj_json_text(writer->output, sqlite3_column_name(statement, column));
        fputs(": ", writer->output);
        json_value(writer->output, statement, column);
    }
    fputc('}', writer->output);
}

static void delimited_row(sj_result_writer *writer, sqlite3_stmt *statement, bool values)
{
    const bool csv = writer->format == SJ_RESULT_CSV;
    char buffer[40];
    for (int column = 0; column < writer->columns; ++column) {
        const char *text = cell_text(statement, column, values, buffer, sizeof(buffer));
        if (csv) {
            fputs(column == 0 ? "" : ",", writer->output);
            write_csv(writer->output, text);
        } else {
            fputs("| ", writer->output);
            write_markdown(writer->output, text);
            fputc(' ', writer->output);
        }
    }
    fputs(csv ? "\n" : "|\n", writer->output);
    for (int column = 0; !csv && !values && column < writer->columns; ++column) {
        fputs(column + 1 == writer->columns ? "|---|\n" : "|---", writer->output);
    }
}

bool sj_result_writer_row(void *context, sqlite3_stmt *statement, bool values)
{
    sj_result_writer *writer = context;
    if (!values) {
        writer->columns = sqlite3_column_count(statement);
        const size_t columns = (size_t)writer->columns;
        writer->widths = calloc(columns, sizeof(*writer->widths));
        writer->numeric = malloc(columns * sizeof(*writer->numeric));
        writer->held = calloc(columns * SJ_RESULT_ALIGNED_ROWS, sizeof(*writer->held));
        if (writer->widths == NULL || writer->numeric == NULL || writer->held == NULL) {
            writer->failed = true;
            return false;
        }
        memset(writer->numeric, 1, columns * sizeof(*writer->numeric));
    }
    if (writer->format == SJ_RESULT_TABLE) {
        table_row(writer, statement, values);
    } else if (writer->format == SJ_RESULT_JSON) {
        json_row(writer, statement, values);
    } else {
        delimited_row(writer, statement, values);
    }
    writer->rows += values;
    return !ferror(writer->output);
}

bool sj_result_writer_end(sj_result_writer *writer)
{
    if (writer->format == SJ_RESULT_JSON && writer->columns != 0) {
        fputs(SJ_JSON_ROWS_END, writer->output);
    }
    if (writer->held != NULL) {
        write_held(writer);
    }
    free(writer->held);
    free(writer->widths);
    free(writer->numeric);
    return !writer->failed && fflush(writer->output) == 0 && !ferror(writer->output);
}
