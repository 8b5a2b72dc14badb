/* Common parts of the virtual tables of this component. These tables are eponymous (they exist
 * without CREATE) and read-only. They receive arguments as hidden columns after their result
 * columns. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H
#define SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H

#include "collector-server/query/query_state.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_table_kind {
    const char *name;
    const char *declaration; /* CREATE TABLE ... */
    bool variant;            /* distinguishes two tables that share their methods */
    /* The other members are for sj_table_use_arguments. */
    int first_argument; /* number of the first hidden column */
    int argument_count;
    int required_count; /* number of required arguments, which come first */
    double rows, cost;  /* estimates for SQLite's planner */
} sj_table_kind;

/* A connected table; cursor->pVtab points to it. */
typedef struct sj_table {
    sqlite3_vtab base;
    const sj_table_kind *kind;
    sj_query_state *state; /* borrowed from the module */
} sj_table;

/* Registers a table on the connection of `state`. `kind` and `methods` must outlive the connection.
 * `methods` must include sj_table_connect and sj_table_disconnect. Returns an SQLite result
 * code. */
int sj_table_register(sj_query_state *state, const sj_table_kind *kind,
                      const sqlite3_module *methods);

/* xConnect and xDisconnect of every table. */
int sj_table_connect(sqlite3 *database, void *context, int argc, const char *const *argv,
                     sqlite3_vtab **out, char **error);
int sj_table_disconnect(sqlite3_vtab *base);

/* xBestIndex of a table function. Sets bit i of idxNum if argument i is given. xFilter receives the
 * given arguments in the order of their columns. Returns SQLITE_CONSTRAINT if a required argument
 * is missing, or if SQLite does not know an argument's value yet. */
int sj_table_use_arguments(sqlite3_vtab *base, sqlite3_index_info *info);

/* Initializes the sqlite3_module of a file that defines open_cursor, close_cursor, filter_rows,
 * next_row, at_end, give_column and give_rowid. */
#define SJ_TABLE_METHODS(best_index)                                                               \
    {                                                                                              \
        .iVersion = 0, .xConnect = sj_table_connect, .xBestIndex = (best_index),                   \
        .xDisconnect = sj_table_disconnect, .xOpen = open_cursor, .xClose = close_cursor,          \
        .xFilter = filter_rows, .xNext = next_row, .xEof = at_end, .xColumn = give_column,         \
        .xRowid = give_rowid                                                                       \
    }

/* Returns zeroed memory for a cursor, which must start with a sqlite3_vtab_cursor. The caller frees
 * it with sqlite3_free. Returns NULL if out of memory. */
void *sj_table_new_cursor(size_t bytes);

static inline const sj_table *sj_table_of(const sqlite3_vtab_cursor *cursor)
{
    return (const sj_table *)cursor->pVtab;
}

#endif
