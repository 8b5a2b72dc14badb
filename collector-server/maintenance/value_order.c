#include "collector-server/maintenance/value_order.h"

#include <stdint.h>
#include <string.h>

enum { NUMBER = 1 };

static int compare_bytes(sqlite3_value *a, sqlite3_value *b)
{
    const int a_size = sqlite3_value_bytes(a);
    const int b_size = sqlite3_value_bytes(b);
    const int least = a_size < b_size ? a_size : b_size;
    const int order =
        least == 0 ? 0 : memcmp(sqlite3_value_blob(a), sqlite3_value_blob(b), (size_t)least);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

/* Returns the rank of a value's type in SQLite's order. */
static int rank_of(sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_NULL:
        return 0;
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        return NUMBER;
    case SQLITE_TEXT:
        return 2;
    default:
        return 3;
    }
}

int sj_value_order(sqlite3_value *a, sqlite3_value *b)
{
    if (rank_of(a) != rank_of(b)) {
        return rank_of(a) - rank_of(b);
    }
    if (sqlite3_value_type(a) == SQLITE_INTEGER && sqlite3_value_type(b) == SQLITE_INTEGER) {
        const int64_t left = sqlite3_value_int64(a);
        const int64_t right = sqlite3_value_int64(b);
        return (left > right) - (left < right);
    }
    if (rank_of(a) == NUMBER) {
        const double left = sqlite3_value_double(a);
        const double right = sqlite3_value_double(b);
        return (left > right) - (left < right);
    }
    return compare_bytes(a, b);
}
