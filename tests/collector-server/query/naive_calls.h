/* A database of made-up calls with phases and values, and the table `naive` beside it. The table
 * has the same calls as plain rows, with which every answer is compared. Only one such database at
 * a time. */
#ifndef SJ_TESTS_COLLECTOR_SERVER_QUERY_NAIVE_CALLS_H
#define SJ_TESTS_COLLECTOR_SERVER_QUERY_NAIVE_CALLS_H

#include "tests/support/trace_maker.h"

extern trace made;
extern sqlite3 *database;

/* open_naive_calls creates and opens the database. Returns 0, or -1 after printing the reason.
 * close_naive_calls is a teardown of cmocka. */
int open_naive_calls(const char *path);
int close_naive_calls(void **state);

/* prepare fails the test if the SQL is wrong. number_of returns the first number of the first
 * row. */
sqlite3_stmt *prepare(const char *sql);
int64_t number_of(const char *sql);

#endif
