/* Read-only connections to the database, one for each request that runs at a time. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_DATABASE_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_DATABASE_POOL_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_database_pool sj_database_pool;

/* sj_database_pool_new opens a first connection and checks that the file is a Sojourn database
 * (SJ_ENOTFOUND, SJ_ECORRUPT, SJ_EIO). Owned by the caller. */
SJ_MUST_CHECK sj_status sj_database_pool_new(const char *path, sj_database_pool **pool,
                                             sj_error *error);
void sj_database_pool_free(sj_database_pool *pool);

/* sj_database_pool_take gives a connection inside a read transaction, whose statements are
 * interrupted (SQLITE_INTERRUPT) once `deadline_ms` from now have passed, or `goes_on` (NULL:
 * always) says so. The SQL function
 * histogram_ns(blob, q, numerator, denominator) is there: quantile q of a stored histogram, in ns,
 * NULL when it is empty or cannot be read. Give the connection back. Any thread. */
SJ_MUST_CHECK sj_status sj_database_pool_take(sj_database_pool *pool, unsigned deadline_ms,
                                              bool (*goes_on)(void *context), void *context,
                                              sqlite3 **database, sj_error *error);

/* sj_database_pool_give ends the transaction: snapshots are as short as requests, so that the
 * writer can checkpoint. */
void sj_database_pool_give(sj_database_pool *pool, sqlite3 *database);

/* sj_database_pool_open opens a connection of the caller's own, without transaction and deadline.
 */
SJ_MUST_CHECK sj_status sj_database_pool_open(const sj_database_pool *pool, sqlite3 **database,
                                              sj_error *error);

#endif
