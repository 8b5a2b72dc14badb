/* Common parts of the virtual tables of this component. The tables exist without CREATE, only read,
 * and get arguments as hidden columns after their result columns. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H
#define SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H

#include "collector-server/query/query_state.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_table_kind {
    const char *name;
    const char *declaration; /* CREATE TABLE ... */
    bool variant;            /* which of two tables that share their methods */
    /* For table functions: */
    int first_argument; /* number of a column */
    int argument_count;
    int required_count; /* the first so many arguments are required */
    double rows, cost;  /* estimates for SQLite's planner */
} sj_table_kind;

/* A connected table; xColumn and the other methods find it as cursor->pVtab. */
typedef struct sj_table {
    sqlite3_vtab base;
    const sj_table_kind *kind;
    sj_query_state *state; /* borrowed: lives as long as the module */
} sj_table;

/* Registers a table on a connection. `kind` and `methods` must be constants. `methods` include
 * sj_table_connect and sj_table_disconnect. Returns an SQLite result code. */
int sj_table_register(sj_query_state *state, const sj_table_kind *kind,
                      const sqlite3_module *methods);

int sj_table_connect(sqlite3 *database, void *held, int argc, const char *const *argv,
                     sqlite3_vtab **out, char **error);
int sj_table_disconnect(sqlite3_vtab *base);

/* Implements xBestIndex of a table function: bit i of idxNum says that argument i is given. xFilter
 * gets the given arguments in order. */
int sj_table_use_arguments(sqlite3_vtab *base, sqlite3_index_info *info);

/* Initializes the sqlite3_module of a file whose functions have the usual names. */
#define SJ_TABLE_METHODS(best_index)                                                               \
    {                                                                                              \
        .iVersion = 0, .xConnect = sj_table_connect, .xBestIndex = (best_index),                   \
        .xDisconnect = sj_table_disconnect, .xOpen = open_cursor, .xClose = close_cursor,          \
        .xFilter = filter_rows, .xNext = next_row, .xEof = at_end, .xColumn = give_column,         \
        .xRowid = give_rowid                                                                       \
    }

/* Allocates a zeroed cursor of `bytes`, which starts with a sqlite3_vtab_cursor; free it with
 * sqlite3_free. Returns NULL if out of memory. */
void *sj_table_new_cursor(size_t bytes);

static inline const sj_table *sj_table_of(const sqlite3_vtab_cursor *cursor)
{
    return (const sj_table *)cursor->pVtab;
}

#endif
