/* The order of values in SQLite's keys. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_VALUE_ORDER_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_VALUE_ORDER_H

#include <sqlite3.h>

/* Compares two values as an index with the collation BINARY orders them. Returns a negative number,
 * 0, or a positive number. Unlike SQLite, compares an integer and a floating-point number as
 * doubles, which may round the integer. Thread-safe for values of different threads. */
int sj_value_order(sqlite3_value *a, sqlite3_value *b);

#endif
