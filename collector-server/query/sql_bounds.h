/* SQLite's functions of text for SQL from outside, within bounds of time. A function runs to its
 * end whatever the limit of a query: padding by printf('%.*c') of two thousand million, a pattern
 * or a text that is looked for in another at each of its places, take minutes to days. Here such
 * calls are refused before they run. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_BOUNDS_H

#include <sqlite3.h>
#include <stdint.h>

/* The longest pattern of LIKE and GLOB. */
enum { SJ_SQL_PATTERN_BYTES = 1000 };

/* sj_sql_bounds_register puts bounded functions on a connection: of printf() and format(), all
 * widths and precisions together may ask for `max_bytes`; of instr(), replace(), trim() with a set,
 * like(), glob() and json_patch(), the product of the lengths of the first two arguments is
 * bounded. They answer as SQLite's own otherwise, and beyond fail with SQLITE_TOOBIG and a message.
 * SQLite result. */
int sj_sql_bounds_register(sqlite3 *database, int64_t max_bytes);

/* sj_sql_bounds_remove gives SQLite's own functions back. */
void sj_sql_bounds_remove(sqlite3 *database);

#endif
