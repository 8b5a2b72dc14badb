/* printf() and format() for SQL from outside. SQLite writes the padding of a width or a precision
 * character by character, past the limit of a value and without a look at the time: '%.*c' of two
 * thousand million runs for half a minute. Here such a format is refused before it runs. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SQL_FORMAT_H
#define SJ_COLLECTOR_SERVER_QUERY_SQL_FORMAT_H

#include <sqlite3.h>
#include <stdint.h>

/* sj_sql_format_register puts bounded printf() and format() on a connection: all widths and
 * precisions of a format together may ask for `max_bytes`. They answer as SQLite's own otherwise,
 * and beyond fail with SQLITE_TOOBIG. SQLite result. */
int sj_sql_format_register(sqlite3 *database, int64_t max_bytes);

/* sj_sql_format_remove gives SQLite's own functions back. */
void sj_sql_format_remove(sqlite3 *database);

#endif
