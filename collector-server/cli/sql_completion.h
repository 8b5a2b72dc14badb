/* The words that the SQL shell completes. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sj_word_list {
    char **words; /* owned, sorted, without duplicates */
    size_t count, capacity;
} sj_word_list;

/* Collects at most 400 words that begin with `prefix`. If `quoted`, these are names of recorded
 * functions. Else they are keywords, tables, columns, SQL functions, shipped queries and dot
 * commands. If out of memory, some words are missing. The caller calls sj_word_list_deinit. Blocks
 * on the database. */
void sj_sql_complete(sqlite3 *database, const char *prefix, bool quoted, sj_word_list *list);
void sj_word_list_deinit(sj_word_list *list);

#endif
