/* What the virtual tables of this room have in common: they exist without CREATE, only read, and
 * take arguments as hidden columns behind those that they give. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H
#define SJ_COLLECTOR_SERVER_QUERY_TABLE_FUNCTION_H

#include "collector-server/query/query_state.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_table_kind {
    const char *name;
    const char *declaration; /* CREATE TABLE ... */
    bool variant;            /* which of the tables that share their methods */
    /* of table functions */
    int first_argument; /* column */
    int argument_count;
    int required_count; /* no plan without these, the first ones */
    double rows, cost;  /* estimates for the planner */
} sj_table_kind;

/* A connected table; xColumn and the rest find it as cursor->pVtab. */
typedef struct sj_table {
    sqlite3_vtab base;
    const sj_table_kind *kind;
    sj_query_state *state; /* borrowed: it lives as long as the module */
} sj_table;

/* sj_table_register makes a table of a connection; `kind` and `methods` must be constants.
 * `methods` have sj_table_connect and sj_table_disconnect. An SQLite result code. */
int sj_table_register(sj_query_state *state, const sj_table_kind *kind,
                      const sqlite3_module *methods);

int sj_table_connect(sqlite3 *database, void *held, int argc, const char *const *argv,
                     sqlite3_vtab **out, char **error);
int sj_table_disconnect(sqlite3_vtab *base);

/* sj_table_take_arguments is the xBestIndex of a table function: bit i of idxNum says that argument
 * i is given; xFilter gets those that are, in order. */
int sj_table_take_arguments(sqlite3_vtab *base, sqlite3_index_info *info);

/* SJ_TABLE_METHODS initialises the sqlite3_module of a file whose functions have the usual names.
 */
#define SJ_TABLE_METHODS(best_index)                                                               \
    {                                                                                              \
        .iVersion = 0, .xConnect = sj_table_connect, .xBestIndex = (best_index),                   \
        .xDisconnect = sj_table_disconnect, .xOpen = open_cursor, .xClose = close_cursor,          \
        .xFilter = filter_rows, .xNext = next_row, .xEof = at_end, .xColumn = give_column,         \
        .xRowid = give_rowid                                                                       \
    }

/* sj_table_new_cursor makes a zeroed cursor of `bytes`, which begin with sqlite3_vtab_cursor; freed
 * by sqlite3_free. NULL: no memory. */
void *sj_table_new_cursor(size_t bytes);

static inline const sj_table *sj_table_of(const sqlite3_vtab_cursor *cursor)
{
    return (const sj_table *)cursor->pVtab;
}

#endif
