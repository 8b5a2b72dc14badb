/* Limits the run time of SQLite's text functions for SQL from outside. A function call runs to its
 * end, whatever the limit of a query. Padding by printf('%.*c') of two billion, a pattern match, or
 * a search for one text in another can take minutes to days. Such calls are refused before they
 * run. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H

#include <sqlite3.h>
#include <stdint.h>

/* The longest pattern of LIKE and GLOB. */
enum { SJ_SQL_PATTERN_BYTES = 1000 };

/* Registers limited functions on a connection. printf() and format(): all widths and precisions
 * together may be up to `max_bytes`. instr(), replace(), trim() with a set, like(), glob() and
 * json_patch(): the product of the lengths of the first two arguments is limited. Within the limits
 * they behave like SQLite's functions; beyond them they fail with SQLITE_TOOBIG and a message.
 * Returns an SQLite result code. */
int sj_sql_bounds_register(sqlite3 *database, int64_t max_bytes);

/* Restores SQLite's functions. */
void sj_sql_bounds_remove(sqlite3 *database);

#endif
