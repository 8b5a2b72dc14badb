/* Runs the SQL statements of schema/queries. The build generates the text of each, and the types of
 * its parameters and rows (schema/embed_statements.py). */
#ifndef SJ_COLLECTOR_SERVER_STORE_SQL_H
#define SJ_COLLECTOR_SERVER_STORE_SQL_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The C type of a parameter. */
typedef enum sj_sql_kind {
    SJ_BIND_INT,           /* int64_t */
    SJ_BIND_COUNT,         /* uint64_t; larger values become INT64_MAX */
    SJ_BIND_TEXT,          /* const char *; NULL binds null */
    SJ_BIND_BLOB,          /* sj_slice */
    SJ_BIND_OPTIONAL_BLOB, /* sj_slice; without data it binds null */
    SJ_BIND_DEVICE_TEXT,   /* sj_slice of text, which may not be UTF-8 */
    SJ_BIND_OPTIONAL       /* const int64_t *; NULL binds null */
} sj_sql_kind;

typedef struct sj_sql_field {
    sj_sql_kind kind;
    size_t offset; /* in the struct of the parameters, bytes */
} sj_sql_field;

/* The parameters of a statement, from ?1 on. {0} has none. */
typedef struct sj_sql_binds {
    const sj_sql_field *fields; /* NULL: `values` is an array of int64_t */
    size_t count;
    const void *values; /* borrowed until the statement was run, with the texts and blobs in it */
} sj_sql_binds;

/* Parameters that are all int64_t. */
#define SJ_SQL_INTS(...)                                                                           \
    ((sj_sql_binds){.count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                   \
                    .values = (const int64_t[]){__VA_ARGS__}})

/* One parameter, which is a text. */
#define SJ_SQL_TEXT(text)                                                                          \
    ((sj_sql_binds){.fields = (const sj_sql_field[]){{SJ_BIND_TEXT, 0}},                           \
                    .count = 1,                                                                    \
                    .values = (const char *const[]){text}})

/* Binds all parameters of a statement. Returns an SQLite result code. Call it on the statement's
 * thread. Does not block. */
int sj_sql_bind_values(sqlite3_stmt *statement, sj_sql_binds binds);

/* Borrows the blob or text of a column until the statement is stepped or reset. */
static inline sj_slice sj_sql_blob(sqlite3_stmt *row, int column)
{
    const void *data = sqlite3_column_blob(row, column);
    return (sj_slice){.data = data, .size = (size_t)sqlite3_column_bytes(row, column)};
}

/* Reads one row. Returns SQLITE_OK, or a result code that ends the statement: SQLITE_DONE if more
 * rows are not needed, else an error. */
typedef int sj_sql_row_scanner(void *context, sqlite3_stmt *row);

/* Steps a statement whose parameters are bound, and calls `scan_row` with `context` for each row.
 * Returns SQLITE_OK after the last row or after SQLITE_DONE from `scan_row`. Otherwise returns the
 * error of SQLite or of `scan_row`. Then resets the statement. Blocks. Call it on the connection's
 * thread. */
int sj_sql_scan(sqlite3_stmt *statement, sj_sql_row_scanner *scan_row, void *context);

/* Prepares a statement, binds its parameters and does what sj_sql_scan does with it. */
int sj_sql_scan_text(sqlite3 *database, const char *sql, sj_sql_binds binds,
                     sj_sql_row_scanner *scan_row, void *context);

/* Reads one row. Any status but SJ_OK ends the statement. */
typedef sj_status sj_sql_row_reader(void *context, sqlite3_stmt *row);

/* Does what sj_sql_each does with a statement that is prepared and whose parameters are bound. Then
 * resets the statement. Returns the errors of sj_sql_each. */
SJ_MUST_CHECK sj_status sj_sql_each_row(sqlite3_stmt *statement, sj_sql_row_reader *read_row,
                                        void *context, sj_error *error);

/* Runs a statement, and calls `read_row` with `context` for each row, until `read_row` returns
 * another status than SJ_OK. Then returns that status; only SJ_ENOMEM gets a message. Returns
 * SJ_ENOMEM, SJ_ECORRUPT, SJ_EFULL, SJ_EAGAIN or SJ_EIO if SQLite failed, with its message.
 * `read_row` may be NULL. Blocks. Call it on the connection's thread. */
SJ_MUST_CHECK sj_status sj_sql_each(sqlite3 *database, const char *sql, sj_sql_binds binds,
                                    sj_sql_row_reader *read_row, void *context, sj_error *error);

/* Runs a statement, and reads the first column of its first row. Returns SJ_ENOTFOUND without a
 * message if there is no row; otherwise as sj_sql_each. */
SJ_MUST_CHECK sj_status sj_sql_number(sqlite3 *database, const char *sql, sj_sql_binds binds,
                                      int64_t *number, sj_error *error);

typedef struct sj_sql_numbers {
    int64_t *values; /* on the heap; the caller frees them, also after an error */
    size_t count, capacity;
} sj_sql_numbers;

/* Runs a statement, and appends the first column of each row to `numbers`. Returns the errors of
 * sj_sql_each. */
SJ_MUST_CHECK sj_status sj_sql_list_numbers(sqlite3 *database, const char *sql, sj_sql_binds binds,
                                            sj_sql_numbers *numbers, sj_error *error);

#endif
