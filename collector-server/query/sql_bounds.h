/* Limits the run time of SQLite's text functions for SQL from outside. SQLite cannot interrupt a
 * function call, so the time limit of a query does not stop it. Three calls can take minutes to
 * days: printf('%.*c') with a width of two billion, a pattern match, and a text search. The limited
 * functions refuse these calls before they run. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_SQL_PATTERN_BYTES = 1000 }; /* the longest pattern of LIKE and GLOB */

/* Registers limited functions on a connection. printf() and format(): the sum of all widths and
 * precisions may be up to `max_bytes`. instr(), replace(), like(), glob(), json_patch(), and
 * trim(), ltrim() and rtrim() with two arguments: the product of the lengths of the first two
 * arguments is limited. A call beyond the limit fails with SQLITE_TOOBIG and a message. Other calls
 * return the result of SQLite's function. Returns an SQLite result code. */
int sj_sql_bounds_register(sqlite3 *database, int64_t max_bytes);

/* Restores SQLite's functions. */
void sj_sql_bounds_remove(sqlite3 *database);

#endif
