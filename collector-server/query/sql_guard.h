/* SQL guard: lets SQL from outside only read the database, within limits of time, rows and memory.
 * It needs a connection from sj_database_open_reader that nothing else uses. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_sql_limits {
    int64_t time_ms;         /* limit of a query, including its preparation; 0: none */
    int64_t processor_ms;    /* the same, in processor time of the calling thread; 0: none */
    int64_t max_rows;        /* rows passed to the caller; 0: no limit */
    int64_t max_value_bytes; /* limit of a text, a blob or a row; 0 means 16 MiB */
    /* limit of all memory of SQLite in the process (sqlite3_hard_heap_limit64); 0: none */
    int64_t heap_bytes;
} sj_sql_limits;

typedef struct sj_sql_guard sj_sql_guard;

/* Installs a guard on `database` (borrowed). The caller frees the guard before it closes the
 * connection. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_sql_guard_new(sqlite3 *database, const sj_sql_limits *limits,
                                         sj_sql_guard **guard, sj_error *error);

/* Removes the guard from the connection, and restores the heap limit and SQLite's functions. The
 * connection keeps the limits of sqlite3_limit and sqlite3_db_config. NULL is allowed. */
void sj_sql_guard_free(sj_sql_guard *guard);

/* Receives the result. The guard calls it before the first row, with `values` false, so that it can
 * read the columns' names. Then the guard calls it for each row. The callback reads the row with
 * sqlite3_column_*. It returns false to stop the query without an error. */
typedef bool (*sj_sql_row_callback)(void *context, sqlite3_stmt *statement, bool values);

/* Binds the parameters of a prepared statement. If it fails, the guard does not run the statement
 * and returns its error. */
typedef sj_status (*sj_sql_prepared)(void *context, sqlite3_stmt *statement, sj_error *error);

/* SQLite calls it at short intervals while a statement runs. It returns false to interrupt the
 * statement. */
typedef bool (*sj_sql_watch)(void *context);

/* sj_sql_guard_set_prepared and sj_sql_guard_set_watch set the callbacks for later statements;
 * NULL: none. */
void sj_sql_guard_set_prepared(sj_sql_guard *guard, sj_sql_prepared prepared, void *context);
void sj_sql_guard_set_watch(sj_sql_guard *guard, sj_sql_watch watch, void *context);

typedef struct sj_sql_outcome {
    int64_t rows;
    bool truncated; /* the result has more than max_rows rows */
} sj_sql_outcome;

/* Runs the statement `sql`. Returns SJ_EINVAL if `sql` is invalid or not exactly one statement;
 * SJ_EPERM if the guard refuses an action, which the message names; SJ_ETIMEDOUT at the time limit;
 * SJ_ELIMIT at the limits of memory, sizes and temporary files; SJ_ECLOSED if the watch callback
 * interrupted the statement; SJ_ECORRUPT if the database is damaged; SJ_EIO. Also returns errors of
 * the prepared callback. Blocks until the statement ends. */
SJ_MUST_CHECK sj_status sj_sql_guard_run(sj_sql_guard *guard, const char *sql,
                                         sj_sql_row_callback row, void *context,
                                         sj_sql_outcome *outcome, sj_error *error);

#endif
