/* The virtual tables and SQL functions for queries of single calls.
 *
 * sj_query_register adds to one SQLite connection (SQLite 3.40 or later):
 *   calls                          every call, one row each (calls_table.c)
 *   call_aggregate(session)        sums of calls per function, in a time window (call_aggregate.c)
 *   call_groups(keys)              sums by session, thread, caller, time, ... (group_table.c)
 *   descendants(call_id)           all calls inside a call, in order of entry (lineage_table.c)
 *   ancestors(call_id)             all calls that contain a call, innermost first
 *   siblings(call_id)              all calls that the caller of a call made (statement_table.c)
 *   sequence(call_id, call_id)     the calls that began between two calls (statement_table.c)
 *   contains(session, a, b)        calls of a function that contain calls of another one
 *                                  (overlap_table.c)
 *   intervals_intersect(session, a, b)
 *                                  pairs of calls of two functions that ran at the same time
 *   concurrency(session)           how many calls ran at once (concurrency_table.c)
 *   coverage(sessions)             functions or lines that were entered (coverage_table.c)
 *   call_tree(session)             call paths, depth first (tree_table.c)
 *   open_paths(session)            open calls of each call path (open_paths_table.c)
 *   open_now(session)              calls that are open at the end of the stored data
 *                                  (open_now_table.c)
 *   open_before(session)           calls that were open before the first block
 *   flame(session)                 call paths as a flame graph
 *   session_set(sessions)          the sessions that a text names (session_set.h)
 *   diff_functions(a, b)           compares two sets of sessions (session_set.h, compare.h)
 *   diff_tree(a, b)                compares them by call path
 *   histogram(blob [, session_id]) the bins of a stored histogram (histogram_table.c)
 *   percentile(value, p), histogram(value): aggregates over any values
 *   demangle(symbol), histogram_quantile(blob, q [, session_id [, min_ns, max_ns]]),
 *   histogram_merge(blob [, session_id]), format_duration(ns), format_bytes(bytes),
 *   query_warnings()
 *
 * All of them only read, and exist until the connection is closed. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_QUERY_H
#define SJ_COLLECTOR_SERVER_QUERY_QUERY_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct sj_sums_cache;

/* Registers the tables and functions on a connection. Call this once per connection. `sums` is a
 * cache for the connection's database (sums_cache.h), or NULL. It must outlive the connection.
 * Fails with SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_query_register(sqlite3 *database, struct sj_sums_cache *sums,
                                          sj_error *error);

/* Opens a read-only connection with these tables and functions. `sums` is the cache for
 * sj_query_register. Fails with the errors of sj_database_open and sj_query_register. The caller
 * closes `*database` with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_query_open_reader(const char *path, struct sj_sums_cache *sums,
                                             sqlite3 **database, sj_error *error);

/* Calls sj_query_open_reader without a cache. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_database_open_reader(const char *path, sqlite3 **database,
                                                sj_error *error);

/* Returns the warnings since the last call of this function on the connection, one line per block
 * that could not be read. Returns NULL if there are none. The calls of these blocks are missing in
 * results. The caller frees the text with sqlite3_free. */
char *sj_query_read_warnings(sqlite3 *database);

enum { SJ_DURATION_TEXT_BYTES = 32 };

/* Writes a duration for people ("412 ns", "3.20 us", "1.50 s", "2 h 05 min") to `text`, and returns
 * `text`. */
const char *sj_format_duration(int64_t duration_ns, char text[SJ_DURATION_TEXT_BYTES]);

enum { SJ_BYTES_TEXT_BYTES = 32 };

/* Writes a size for people ("412 B", "3.2 KiB", "-1.5 MiB") to `text`, and returns `text`. */
const char *sj_format_bytes(int64_t bytes, char text[SJ_BYTES_TEXT_BYTES]);

#endif
