/* SQL guard: lets SQL from outside read only the tables, views and functions of Sojourn, within
 * limits of time, rows and memory. It needs a connection of its own from sj_database_open_reader,
 * and stays until the connection is closed. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_sql_limits {
    int64_t time_ms;         /* limit of one query, including its preparation; 0: none */
    int64_t max_rows;        /* rows passed to the caller; 0: no limit */
    int64_t max_value_bytes; /* of one text or blob, and of a row; 0: 16 MB */
    int64_t heap_bytes; /* of SQLite in the whole process (sqlite3_hard_heap_limit64); 0: none */
} sj_sql_limits;

typedef struct sj_sql_guard sj_sql_guard;

/* Installs the guard on `database` (borrowed). SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_sql_guard_new(sqlite3 *database, const sj_sql_limits *limits,
                                         sj_sql_guard **guard, sj_error *error);

/* Removes guard and limits from the connection. NULL is allowed. */
void sj_sql_guard_free(sj_sql_guard *guard);

/* Called once for the result's columns (`values` is false), and once per row. The callback reads
 * the row with sqlite3_column_*. It returns false to stop without an error. */
typedef bool (*sj_sql_row)(void *context, sqlite3_stmt *statement, bool values);

/* Called after a statement is prepared, to bind its parameters. */
typedef sj_status (*sj_sql_prepared)(void *context, sqlite3_stmt *statement, sj_error *error);

/* Called from time to time while a statement runs; returns false to interrupt it. */
typedef bool (*sj_sql_watch)(void *context);

/* Set callbacks for later statements; NULL: none. */
void sj_sql_guard_set_prepared(sj_sql_guard *guard, sj_sql_prepared prepared, void *context);
void sj_sql_guard_set_watch(sj_sql_guard *guard, sj_sql_watch watch, void *context);

typedef struct sj_sql_outcome {
    int64_t rows;
    bool truncated; /* the row limit cut the result */
} sj_sql_outcome;

/* Runs exactly one statement. Returns SJ_EINVAL for none, several, or invalid SQL; SJ_EPERM if the
 * guard refused something (the message says what); SJ_ETIMEDOUT or SJ_ELIMIT for limits;
 * SJ_ECORRUPT, SJ_EIO, SJ_ENOMEM. Blocks until done. */
SJ_MUST_CHECK sj_status sj_sql_guard_run(sj_sql_guard *guard, const char *sql, sj_sql_row row,
                                         void *context, sj_sql_outcome *outcome, sj_error *error);

#endif
