/* Design notes. The work is done by SQLite's own function, on a connection in memory of its own:
 * a connection has no other way to a function that was replaced. */
#include "collector-server/query/sql_format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"printf", "format"};

typedef struct bounded_format {
    int64_t max_bytes;
    sqlite3 *own;            /* in memory */
    sqlite3_stmt *statement; /* of `count` arguments */
    int count;
    int references;
} bounded_format;

static void release(void *held)
{
    bounded_format *format = held;
    if (--format->references == 0) {
        sqlite3_finalize(format->statement);
        sqlite3_close(format->own);
        sqlite3_free(format);
    }
}

/* The number at `*at`: digits, or '*' for the next argument, which SQLite reads as an int. */
static int64_t read_count(const char **at, sqlite3_value **values, int count, int *used)
{
    if (**at == '*') {
        ++*at;
        const int value = *used < count ? (int)sqlite3_value_int64(values[*used]) : 0;
        ++*used;
        return value < 0 ? -(int64_t)value : value;
    }
    int64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        number = number < INT_MAX ? number * 10 + (**at - '0') : number;
    }
    return number;
}

/* What the widths and precisions of a format ask for together. */
static int64_t padding(const char *format, sqlite3_value **values, int count)
{
    int64_t sum = 0;
    int used = 0;
    for (const char *at = strchr(format, '%'); at != NULL; at = strchr(at, '%')) {
        ++at;
        at += strspn(at, "-+ 0#!,");
        sum += read_count(&at, values, count, &used);
        if (*at == '.') {
            ++at;
            sum += read_count(&at, values, count, &used);
        }
        at += strspn(at, "l");
        if (*at == '\0') {
            break;
        }
        used += *at != '%' && *at != 'n';
        ++at;
    }
    return sum;
}

static int prepare(bounded_format *format, int count)
{
    if (format->statement != NULL && format->count == count) {
        return SQLITE_OK;
    }
    sqlite3_finalize(format->statement);
    format->statement = NULL;
    format->count = count;
    if (format->own == NULL) {
        const int opened = sqlite3_open(":memory:", &format->own);
        if (opened != SQLITE_OK) {
            return opened;
        }
        sqlite3_limit(format->own, SQLITE_LIMIT_LENGTH, (int)format->max_bytes);
    }
    sqlite3_str *sql = sqlite3_str_new(format->own);
    sqlite3_str_appendall(sql, "SELECT printf(?");
    for (int i = 1; i < count; ++i) {
        sqlite3_str_appendall(sql, ",?");
    }
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    if (text == NULL) {
        return SQLITE_NOMEM;
    }
    const int result = sqlite3_prepare_v2(format->own, text, -1, &format->statement, NULL);
    sqlite3_free(text);
    return result;
}

static void answer(sqlite3_context *context, int count, sqlite3_value **values)
{
    bounded_format *format = sqlite3_user_data(context);
    const char *text = count > 0 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    if (text == NULL) {
        return; /* NULL, as SQLite's own */
    }
    const int64_t asked = padding(text, values + 1, count - 1);
    if (asked > format->max_bytes) {
        char message[160];
        snprintf(
            message, sizeof(message),
            "the widths and precisions of the format ask for %lld bytes; a value may have %lld",
            (long long)asked, (long long)format->max_bytes);
        sqlite3_result_error(context, message, -1);
        sqlite3_result_error_code(context, SQLITE_TOOBIG);
        return;
    }
    int result = prepare(format, count);
    for (int i = 0; result == SQLITE_OK && i < count; ++i) {
        result = sqlite3_bind_value(format->statement, i + 1, values[i]);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_step(format->statement);
    }
    if (result == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(format->statement, 0));
    } else {
        sqlite3_result_error_code(context, result);
    }
    sqlite3_reset(format->statement);
    sqlite3_clear_bindings(format->statement);
}

int sj_sql_format_register(sqlite3 *database, int64_t max_bytes)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    bounded_format *format = sqlite3_malloc(sizeof(*format));
    if (format == NULL) {
        return SQLITE_NOMEM;
    }
    *format = (bounded_format){.max_bytes = max_bytes, .references = 1};
    int result = SQLITE_OK;
    for (size_t i = 0; result == SQLITE_OK && i < sizeof(names) / sizeof(names[0]); ++i) {
        ++format->references; /* given back by SQLite, when this fails, too */
        result = sqlite3_create_function_v2(database, names[i], -1, flags, format, answer, NULL,
                                            NULL, release);
    }
    release(format);
    return result;
}

void sj_sql_format_remove(sqlite3 *database)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        (void)sqlite3_create_function_v2(database, names[i], -1, SQLITE_UTF8, NULL, NULL, NULL,
                                         NULL, NULL);
    }
}
