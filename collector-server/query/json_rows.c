#include "collector-server/query/json_rows.h"

#include "collector-server/store/sql.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The largest integer up to which all integers are exact as doubles. JSON readers use doubles. */
#define EXACT_MAX (INT64_C(1) << 53)

static sj_status sql_failure(sqlite3 *database, sj_error *error)
{
    const int code = sqlite3_errcode(database) & 0xff;
    if (code == SQLITE_INTERRUPT) {
        return sj_fail(error, SJ_ETIMEDOUT,
                       "the database took longer than a request may; ask for less at once");
    }
    if (code == SQLITE_NOMEM) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return sj_fail(error, code == SQLITE_BUSY ? SJ_ETIMEDOUT : SJ_EIO, "database: %s",
                   sqlite3_errmsg(database));
}

sj_status sj_rows_prepare(sqlite3 *database, const char *sql, sqlite3_stmt **statement,
                          sj_error *error)
{
    if (sqlite3_prepare_v2(database, sql, -1, statement, NULL) != SQLITE_OK) {
        return sql_failure(database, error);
    }
    return SJ_OK;
}

/* Returns the length of the valid UTF-8 sequence at `text`, 0 if there is none. */
static size_t utf8_length(const uint8_t *text, size_t left)
{
    const size_t length = text[0] < 0x80                       ? 1
                          : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                          : text[0] >= 0xe0 && text[0] <= 0xef ? 3
                          : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                               : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool overlong =
        (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    const bool beyond = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return overlong || beyond ? 0 : length;
}

/* Returns a JSON string in which bytes that are not UTF-8 are U+FFFD: names come from any
 * binary. */
static json_t *text_value(const uint8_t *text, size_t size)
{
    json_t *value = json_stringn((const char *)text, size);
    if (value != NULL) {
        return value;
    }
    char *clean = malloc(size * 3 + 1);
    if (clean == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        const size_t length = utf8_length(text + at, size - at);
        memcpy(clean + used, length > 0 ? (const char *)text + at : "\xef\xbf\xbd",
               length > 0 ? length : 3);
        used += length > 0 ? length : 3;
        at += length > 0 ? length : 1;
    }
    value = json_stringn(clean, used);
    free(clean);
    return value;
}

static json_t *blob_value(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size * 2 + 1);
    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    json_t *value = json_stringn(text, size * 2);
    free(text);
    return value;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text);
    const size_t tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static json_t *integer_value(const char *name, int64_t number)
{
    if (strncmp(name, "is_", 3) == 0) {
        return json_boolean(number != 0);
    }
    if (strcmp(name, "id") == 0 || ends_with(name, "_id") || ends_with(name, "_realtime_ns")) {
        return json_sprintf("%" PRId64, number);
    }
    return json_integer(number);
}

json_t *sj_rows_plain_value(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: {
        const int64_t number = sqlite3_column_int64(statement, column);
        return number > EXACT_MAX || number < -EXACT_MAX ? json_sprintf("%" PRId64, number)
                                                         : json_integer(number);
    }
    case SQLITE_FLOAT: {
        json_t *real = json_real(sqlite3_column_double(statement, column));
        return real != NULL ? real : json_null(); /* JSON has no infinity */
    }
    case SQLITE_TEXT: {
        const uint8_t *text = sqlite3_column_text(statement, column);
        return text_value(text, (size_t)sqlite3_column_bytes(statement, column));
    }
    case SQLITE_BLOB: {
        const uint8_t *bytes = sqlite3_column_blob(statement, column);
        return blob_value(bytes, (size_t)sqlite3_column_bytes(statement, column));
    }
    default:
        return json_null();
    }
}

static json_t *column_value(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER
               ? integer_value(sqlite3_column_name(statement, column),
                               sqlite3_column_int64(statement, column))
               : sj_rows_plain_value(statement, column);
}

static json_t *row_object(sqlite3_stmt *statement)
{
    json_t *row = json_object();
    const int columns = sqlite3_column_count(statement);
    for (int i = 0; row != NULL && i < columns; i++) {
        if (json_object_set_new(row, sqlite3_column_name(statement, i),
                                column_value(statement, i)) != 0) {
            json_decref(row);
            row = NULL;
        }
    }
    return row;
}

typedef struct row_list {
    json_t *rows;
    size_t limit;
    bool has_more;
} row_list;

static sj_status append_row(void *context, sqlite3_stmt *row)
{
    row_list *list = context;
    if (json_array_size(list->rows) == list->limit) {
        list->has_more = true;
        return SJ_EEXIST;
    }
    return json_array_append_new(list->rows, row_object(row)) == 0 ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_rows_read(sqlite3_stmt *statement, size_t limit, json_t **rows, bool *truncated,
                       sj_error *error)
{
    row_list list = {.rows = json_array(), .limit = limit};
    sj_status status = sj_sql_each_row(statement, append_row, &list, NULL);
    if (status == SJ_ENOMEM) {
        sj_fail(error, status, "out of memory");
    } else if (status != SJ_OK && status != SJ_EEXIST) {
        status = sql_failure(sqlite3_db_handle(statement), error);
    }
    sqlite3_finalize(statement);
    if (status != SJ_OK && status != SJ_EEXIST) {
        json_decref(list.rows);
        return status;
    }
    if (truncated != NULL) {
        *truncated = list.has_more;
    }
    *rows = list.rows;
    return SJ_OK;
}

sj_status sj_rows_list(sqlite3_stmt *statement, size_t limit, json_t **list, sj_error *error)
{
    json_t *rows = NULL;
    bool truncated = false;
    SJ_TRY(sj_rows_read(statement, limit, &rows, &truncated, error));
    *list = json_pack("{s:o, s:b}", "items", rows, "truncated", truncated);
    return *list != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

sj_status sj_rows_list_of_session(sqlite3 *database, const char *sql, int64_t session, size_t limit,
                                  json_t *body, const char *name, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *list = NULL;
    SJ_TRY(sj_rows_prepare(database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, session);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)limit + 1);
    SJ_TRY(sj_rows_list(statement, limit, &list, error));
    if (json_object_set_new(body, name, list) != 0) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return SJ_OK;
}

sj_status sj_rows_require_session(sqlite3 *database, int64_t session, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(database, "SELECT 1 FROM sessions WHERE session_id = ?1", &statement,
                           error));
    sqlite3_bind_int64(statement, 1, session);
    const int step = sqlite3_step(statement);
    const sj_status status =
        step == SQLITE_ROW ? SJ_OK
        : step == SQLITE_DONE
            ? sj_fail(error, SJ_ENOTFOUND, "there is no session %" PRId64, session)
            : sql_failure(database, error);
    sqlite3_finalize(statement);
    return status;
}
