#include "collector-server/store/sql.h"

#include "collector-server/store/database.h"
#include "collector-server/store/stored_text.h"
#include "proto/base/array.h"

#include <string.h>

static int bind_blob(sqlite3_stmt *statement, int place, const sj_slice *blob)
{
    return blob->data != NULL
               ? sqlite3_bind_blob64(statement, place, blob->data, blob->size, SQLITE_STATIC)
               : sqlite3_bind_zeroblob(statement, place, 0);
}

static int bind_count(sqlite3_stmt *statement, int place, uint64_t count)
{
    return sqlite3_bind_int64(statement, place, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

static int bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    return sj_stored_text_bind(statement, place, text, text != NULL ? strlen(text) : 0);
}

static int bind_field(sqlite3_stmt *statement, int place, sj_sql_kind kind, const void *value)
{
    const sj_slice *slice = value;
    switch (kind) {
    case SJ_BIND_INT:
        return sqlite3_bind_int64(statement, place, *(const int64_t *)value);
    case SJ_BIND_COUNT:
        return bind_count(statement, place, *(const uint64_t *)value);
    case SJ_BIND_TEXT:
        return bind_text(statement, place, *(const char *const *)value);
    case SJ_BIND_BLOB:
        return bind_blob(statement, place, slice);
    case SJ_BIND_OPTIONAL_BLOB:
        return slice->data != NULL ? bind_blob(statement, place, slice)
                                   : sqlite3_bind_null(statement, place);
    case SJ_BIND_DEVICE_TEXT:
        return sj_stored_text_bind(statement, place, (const char *)slice->data, slice->size);
    case SJ_BIND_OPTIONAL: {
        const int64_t *number = *(const int64_t *const *)value;
        return number != NULL ? sqlite3_bind_int64(statement, place, *number)
                              : sqlite3_bind_null(statement, place);
    }
    }
    return SQLITE_MISUSE;
}

int sj_sql_bind_values(sqlite3_stmt *statement, sj_sql_binds binds)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < binds.count && result == SQLITE_OK; i++) {
        const sj_sql_field field = binds.fields != NULL
                                       ? binds.fields[i]
                                       : (sj_sql_field){SJ_BIND_INT, i * sizeof(int64_t)};
        result = bind_field(statement, (int)i + 1, field.kind,
                            (const char *)binds.values + field.offset);
    }
    return result;
}

int sj_sql_scan(sqlite3_stmt *statement, sj_sql_row_scanner *scan_row, void *context)
{
    int result = SQLITE_OK;
    while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        result = scan_row(context, statement);
    }
    sqlite3_reset(statement);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int sj_sql_scan_text(sqlite3 *database, const char *sql, sj_sql_binds binds,
                     sj_sql_row_scanner *scan_row, void *context)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        result = sj_sql_bind_values(statement, binds);
    }
    if (result == SQLITE_OK) {
        result = sj_sql_scan(statement, scan_row, context);
    }
    sqlite3_finalize(statement);
    return result;
}

typedef struct row_reading {
    sj_sql_row_reader *read_row;
    void *context;
    sj_status status;
} row_reading;

static int scan_row(void *context, sqlite3_stmt *row)
{
    row_reading *reading = context;
    reading->status = reading->read_row != NULL ? reading->read_row(reading->context, row) : SJ_OK;
    return reading->status == SJ_OK ? SQLITE_OK : SQLITE_DONE;
}

static sj_status finish(sqlite3 *database, int result, const row_reading *reading, sj_error *error)
{
    if (result != SQLITE_OK) {
        /* the message of a table function is a sentence of its own */
        return sj_fail(error, sj_database_status(result), "%s%s",
                       (result & 0xff) == SQLITE_ERROR ? "" : "the database cannot be read: ",
                       sqlite3_errmsg(database));
    }
    return reading->status == SJ_ENOMEM ? sj_fail(error, SJ_ENOMEM, "out of memory")
                                        : reading->status;
}

sj_status sj_sql_each_row(sqlite3_stmt *statement, sj_sql_row_reader *read_row, void *context,
                          sj_error *error)
{
    row_reading reading = {.read_row = read_row, .context = context};
    return finish(sqlite3_db_handle(statement), sj_sql_scan(statement, scan_row, &reading),
                  &reading, error);
}

sj_status sj_sql_each(sqlite3 *database, const char *sql, sj_sql_binds binds,
                      sj_sql_row_reader *read_row, void *context, sj_error *error)
{
    row_reading reading = {.read_row = read_row, .context = context};
    return finish(database, sj_sql_scan_text(database, sql, binds, scan_row, &reading), &reading,
                  error);
}

static sj_status read_number(void *context, sqlite3_stmt *row)
{
    *(int64_t *)context = sqlite3_column_int64(row, 0);
    return SJ_EEXIST;
}

sj_status sj_sql_number(sqlite3 *database, const char *sql, sj_sql_binds binds, int64_t *number,
                        sj_error *error)
{
    const sj_status status = sj_sql_each(database, sql, binds, read_number, number, error);
    return status == SJ_EEXIST ? SJ_OK : status == SJ_OK ? SJ_ENOTFOUND : status;
}

static sj_status append_number(void *context, sqlite3_stmt *row)
{
    sj_sql_numbers *numbers = context;
    SJ_TRY(sj_array_reserve(&numbers->values, &numbers->capacity, numbers->count, 1,
                            sizeof(*numbers->values)));
    numbers->values[numbers->count++] = sqlite3_column_int64(row, 0);
    return SJ_OK;
}

sj_status sj_sql_list_numbers(sqlite3 *database, const char *sql, sj_sql_binds binds,
                              sj_sql_numbers *numbers, sj_error *error)
{
    return sj_sql_each(database, sql, binds, append_number, numbers, error);
}
