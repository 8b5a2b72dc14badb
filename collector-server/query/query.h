/* The tables and functions that let SQL ask for single calls.
 *
 * sj_query_register adds to one SQLite connection (SQLite 3.40 or later):
 *   calls                          every call, one row each (calls_table.c)
 *   call_aggregate(session)        calls per function over a time window (call_aggregate.c)
 *   call_groups(keys)              calls by session, thread, caller, time, ... (group_table.c)
 *   descendants(call_id)           calls below a call, in order of entry (lineage_table.c)
 *   ancestors(call_id)             calls above a call, innermost first
 *   call_tree(session)             call paths, depth first (tree_table.c)
 *   open_paths(session)            open calls of each call path (open_paths_table.c)
 *   open_now(session)              calls that are open at the end of the stored data
 *                                  (open_now_table.c)
 *   open_before(session)           calls that were open before the first block
 *   flame(session)                 call paths as a flame graph
 *   session_set(sessions)          the sessions that a text names (session_set.h)
 *   diff_functions(a, b)           compares two sets of sessions (session_set.h, compare.h)
 *   diff_tree(a, b)                the same by call path
 *   histogram(blob [, session_id]) the bins of a stored histogram (histogram_table.c)
 *   percentile(value, p), histogram(value): aggregates over any values
 *   demangle(symbol), histogram_quantile(blob, q [, session_id [, min_ns, max_ns]]),
 *   histogram_merge(blob [, session_id]), format_duration(ns), format_bytes(bytes),
 *   query_warnings()
 *
 * All of them only read. They belong to the connection and end with it. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_QUERY_H
#define SJ_COLLECTOR_SERVER_QUERY_QUERY_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

/* Registers the tables and functions on a connection. Call it once per connection. `sums`
 * (sums_cache.h; NULL: none) keeps the sums of blocks. It must outlive the connection and belong to
 * its database. Returns SJ_ENOMEM or SJ_EIO. */
struct sj_sums_cache;
SJ_MUST_CHECK sj_status sj_query_register(sqlite3 *database, struct sj_sums_cache *sums,
                                          sj_error *error);

/* Opens a read-only connection with these tables and functions. `sums` is as above. Returns the
 * errors of sj_database_open and sj_query_register. The caller closes `*database` with
 * sqlite3_close. */
SJ_MUST_CHECK sj_status sj_query_open_reader(const char *path, struct sj_sums_cache *sums,
                                             sqlite3 **database, sj_error *error);

/* Like sj_query_open_reader without kept sums. */
SJ_MUST_CHECK sj_status sj_database_open_reader(const char *path, sqlite3 **database,
                                                sj_error *error);

/* Returns one line per block that could not be read since the last call on this connection, or NULL
 * if there was none. A query continues past such a block, so its result lacks exactly the calls of
 * these blocks. Free it with sqlite3_free. */
char *sj_query_read_warnings(sqlite3 *database);

enum { SJ_DURATION_TEXT_BYTES = 32 };

/* Writes a duration for people ("412 ns", "3.20 us", "1.5 s", "2 h 05 min") to `text`; returns
 * `text`. */
const char *sj_format_duration(int64_t duration_ns, char text[SJ_DURATION_TEXT_BYTES]);

enum { SJ_BYTES_TEXT_BYTES = 32 };

/* Writes a size for people ("412 B", "3.2 KiB", "-1.5 MiB") to `text`; returns `text`. */
const char *sj_format_bytes(int64_t bytes, char text[SJ_BYTES_TEXT_BYTES]);

#endif
