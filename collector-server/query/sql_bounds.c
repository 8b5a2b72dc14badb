/* Design notes. A bounded function replaces SQLite's function of the same name on the query's
 * connection. So it runs SQLite's function on a private in-memory database. */
#include "collector-server/query/sql_bounds.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The limits differ, because the functions compare at different speeds. instr() and replace()
 * compare several bytes in a step, and json_patch() a whole key. trim(), like() and glob() compare
 * one character. */
typedef struct bounded_kind {
    const char *name;
    int count;         /* number of arguments; -1: any */
    int64_t most_work; /* limit of length 1 * length 2, in bytes squared; 0: padding is limited */
} bounded_kind;

static const bounded_kind kinds[] = {
    {"printf", -1, 0},
    {"format", -1, 0},
    {"instr", 2, INT64_C(4000000000)},
    {"replace", 3, INT64_C(4000000000)},
    {"trim", 2, 200000000},
    {"ltrim", 2, 200000000},
    {"rtrim", 2, 200000000},
    {"like", 2, 400000000},
    {"like", 3, 400000000},
    {"glob", 2, 400000000},
    {"json_patch", 2, INT64_C(4000000000)},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

typedef struct bounded_function {
    const bounded_kind *kind;
    int64_t max_bytes;
    sqlite3 *memory_database; /* NULL until the first call */
    sqlite3_stmt *statement;  /* calls the function with `count` arguments */
    int count;
} bounded_function;

static void release(void *held)
{
    bounded_function *function = held;
    sqlite3_finalize(function->statement);
    sqlite3_close(function->memory_database);
    sqlite3_free(function);
}

/* Returns the width or precision at `*at`, and moves `*at` past it. A '*' takes the next argument,
 * cut to an int as SQLite does. */
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

/* Returns the sum of the widths and precisions of a format, in bytes. */
static int64_t sum_padding(const char *format, sqlite3_value **values, int count)
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

static int prepare(bounded_function *function, int count)
{
    if (function->statement != NULL && function->count == count) {
        return SQLITE_OK;
    }
    sqlite3_finalize(function->statement);
    function->statement = NULL;
    function->count = count;
    if (function->memory_database == NULL) {
        const int opened = sqlite3_open(":memory:", &function->memory_database);
        if (opened != SQLITE_OK) {
            return opened;
        }
        sqlite3_limit(function->memory_database, SQLITE_LIMIT_LENGTH, (int)function->max_bytes);
        sqlite3_limit(function->memory_database, SQLITE_LIMIT_LIKE_PATTERN_LENGTH,
                      SJ_SQL_PATTERN_BYTES);
    }
    sqlite3_str *sql = sqlite3_str_new(function->memory_database);
    sqlite3_str_appendf(sql, "SELECT %s(?", function->kind->name);
    for (int i = 1; i < count; ++i) {
        sqlite3_str_appendall(sql, ",?");
    }
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    if (text == NULL) {
        return SQLITE_NOMEM;
    }
    const int result = sqlite3_prepare_v3(function->memory_database, text, -1,
                                          SQLITE_PREPARE_PERSISTENT, &function->statement, NULL);
    sqlite3_free(text);
    return result;
}

/* If a call would take too much memory or time, sets an error as its result and returns true. */
static bool refuse_if_too_large(sqlite3_context *context, const bounded_function *function,
                                int count, sqlite3_value **values)
{
    char message[200];
    if (function->kind->most_work == 0) {
        const char *format = (const char *)sqlite3_value_text(values[0]);
        const int64_t asked = format != NULL ? sum_padding(format, values + 1, count - 1) : 0;
        if (asked <= function->max_bytes) {
            return false;
        }
        snprintf(message, sizeof(message),
                 "the widths and precisions of the format ask for %lld bytes; a value may have "
                 "%lld",
                 (long long)asked, (long long)function->max_bytes);
    } else {
        const int64_t first = sqlite3_value_bytes(values[0]);
        const int64_t second = sqlite3_value_bytes(values[1]);
        if (first * second <= function->kind->most_work) {
            return false;
        }
        snprintf(message, sizeof(message), "%s() of %lld and %lld bytes would take too long",
                 function->kind->name, (long long)first, (long long)second);
    }
    sqlite3_result_error(context, message, -1);
    sqlite3_result_error_code(context, SQLITE_TOOBIG);
    return true;
}

static void run_builtin(sqlite3_context *context, int count, sqlite3_value **values)
{
    bounded_function *function = sqlite3_user_data(context);
    if (count == 0 || refuse_if_too_large(context, function, count, values)) {
        return; /* printf() without arguments returns NULL, as in SQLite */
    }
    int result = prepare(function, count);
    for (int i = 0; result == SQLITE_OK && i < count; ++i) {
        result = sqlite3_bind_value(function->statement, i + 1, values[i]);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_step(function->statement);
    }
    if (result == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(function->statement, 0));
    } else if (function->memory_database != NULL && result == SQLITE_ERROR) {
        sqlite3_result_error(context, sqlite3_errmsg(function->memory_database), -1);
    } else {
        sqlite3_result_error_code(context, result);
    }
    if (function->statement != NULL) {
        sqlite3_reset(function->statement);
        sqlite3_clear_bindings(function->statement);
    }
}

int sj_sql_bounds_register(sqlite3 *database, int64_t max_bytes)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int result = SQLITE_OK;
    for (size_t i = 0; result == SQLITE_OK && i < KINDS; ++i) {
        bounded_function *function = sqlite3_malloc(sizeof(*function));
        if (function == NULL) {
            return SQLITE_NOMEM;
        }
        *function = (bounded_function){.kind = &kinds[i], .max_bytes = max_bytes};
        /* SQLite calls `release` even if the registration fails. */
        result = sqlite3_create_function_v2(database, kinds[i].name, kinds[i].count, flags,
                                            function, run_builtin, NULL, NULL, release);
    }
    return result;
}

void sj_sql_bounds_remove(sqlite3 *database)
{
    for (size_t i = 0; i < KINDS; ++i) {
        (void)sqlite3_create_function_v2(database, kinds[i].name, kinds[i].count, SQLITE_UTF8, NULL,
                                         NULL, NULL, NULL, NULL);
    }
}
