/* A database as the store writes it, filled by SQL, for the tests of HTTP and dashboard. */
#ifndef SJ_TESTS_COLLECTOR_SERVER_HTTP_FIXTURE_H
#define SJ_TESTS_COLLECTOR_SERVER_HTTP_FIXTURE_H

#include <sqlite3.h>
#include <stdint.h>

/* A tick of the fixture's sessions lasts half a nanosecond. */
enum { FIXTURE_TICKS_NUMERATOR = 1, FIXTURE_TICKS_DENOMINATOR = 2 };

/* Creates the database from schema/migrations in WAL mode, and fills it:
 *   session 1: completed, lossless; main (1 call) -> parse, render, many_children; parse ->
 *              tokenize; many_children -> leaf_000..leaf_059; `extra_functions` more functions;
 *              a recursive function walk; names with %, _, invalid UTF-8
 *   session 2: crashed, with gaps and unhooked functions
 *   session 3: recording; main has not ended
 * Returns a connection, which the caller closes. Aborts with a message on any error. */
sqlite3 *fixture_create(const char *path, unsigned extra_functions);

/* Adds a recording session with `calls` calls. Returns its id. */
int64_t fixture_add_session(sqlite3 *database, const char *command, int64_t calls);

/* Runs a statement. Aborts on an error. */
void fixture_run(sqlite3 *database, const char *sql);

#endif
