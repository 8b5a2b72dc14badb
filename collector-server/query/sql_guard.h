/* The guard for SQL that someone else wrote: it can read the tables, views and functions of Sojourn
 * and nothing else, within limits of time, rows and memory. Works on a connection of its own that
 * was opened with sj_database_open_reader; the guard holds until the connection is closed. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_GUARD_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_sql_limits {
    int64_t time_ms;         /* of one query, prepare included; 0: none */
    int64_t max_rows;        /* rows given to the caller; 0: no limit */
    int64_t max_value_bytes; /* of one text or blob, and of a row; 0: 16 MB */
    int64_t heap_bytes; /* of SQLite in the whole process (sqlite3_hard_heap_limit64); 0: none */
} sj_sql_limits;

typedef struct sj_sql_guard sj_sql_guard;

/* sj_sql_guard_new puts the guard on `database` (borrowed). SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_sql_guard_new(sqlite3 *database, const sj_sql_limits *limits,
                                         sj_sql_guard **guard, sj_error *error);

/* sj_sql_guard_free takes guard and limits off the connection. NULL is allowed. */
void sj_sql_guard_free(sj_sql_guard *guard);

/* Called for the result's columns once (row 0 is still to come: `values` is false) and for each
 * row. The statement is positioned; the callback reads it with sqlite3_column_*. Return false to
 * stop without error. */
typedef bool (*sj_sql_row)(void *context, sqlite3_stmt *statement, bool values);

/* Called after a statement was prepared and before it runs, to bind its parameters. */
typedef sj_status (*sj_sql_prepared)(void *context, sqlite3_stmt *statement, sj_error *error);

/* Called now and then while a statement runs; false interrupts it. */
typedef bool (*sj_sql_watch)(void *context);

/* sj_sql_guard_set_prepared and sj_sql_guard_set_watch set callbacks for the statements to come;
 * NULL: none. */
void sj_sql_guard_set_prepared(sj_sql_guard *guard, sj_sql_prepared prepared, void *context);
void sj_sql_guard_set_watch(sj_sql_guard *guard, sj_sql_watch watch, void *context);

typedef struct sj_sql_outcome {
    int64_t rows;
    bool truncated; /* the row limit cut the result */
} sj_sql_outcome;

/* sj_sql_guard_run runs one statement. More than one, or none: SJ_EINVAL. SJ_EPERM: the guard
 * refused something, the message says what. SJ_ETIMEDOUT, SJ_ELIMIT: limits. SJ_EINVAL: SQL that
 * SQLite does not accept. SJ_ECORRUPT, SJ_EIO, SJ_ENOMEM. Blocks until done. */
SJ_MUST_CHECK sj_status sj_sql_guard_run(sj_sql_guard *guard, const char *sql, sj_sql_row row,
                                         void *context, sj_sql_outcome *outcome, sj_error *error);

#endif
