/* Read-only connections to the database, one for each running request. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_DATABASE_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_DATABASE_POOL_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_database_pool sj_database_pool;

/* Opens a first connection and checks that the file is a Sojourn database. The caller frees
 * `*pool`. Returns SJ_ENOTFOUND, SJ_ECORRUPT, SJ_EIO, SJ_ENOMEM, or the errors of
 * sj_database_check. */
SJ_MUST_CHECK sj_status sj_database_pool_new(const char *path, sj_database_pool **pool,
                                             sj_error *error);
void sj_database_pool_free(sj_database_pool *pool);

/* Lends a connection in a read transaction; return it with sj_database_pool_give. Its statements
 * are interrupted (SQLITE_INTERRUPT) after `deadline_ms`, or when `is_wanted` returns false
 * (NULL: always true). Returns SJ_ETIMEDOUT if all connections are lent, or an error of
 * sj_database_pool_open. Thread-safe.
 *
 * The connection has the SQL function histogram_ns(blob, q, numerator, denominator, min_ns,
 * max_ns): quantile q of a stored histogram in ns, or NULL if it is empty or cannot be read. */
SJ_MUST_CHECK sj_status sj_database_pool_borrow(sj_database_pool *pool, unsigned deadline_ms,
                                                bool (*is_wanted)(void *context), void *context,
                                                sqlite3 **database, sj_error *error);

/* Ends the transaction and returns the connection. Call it at the end of each request: an open
 * transaction prevents checkpoints of the writer. */
void sj_database_pool_give(sj_database_pool *pool, sqlite3 *database);

/* Opens a connection that the caller owns. It has the same SQL functions, but no transaction and no
 * deadline. Fails with SJ_EIO or an error of sj_query_register. */
SJ_MUST_CHECK sj_status sj_database_pool_open(const sj_database_pool *pool, sqlite3 **database,
                                              sj_error *error);

#endif
