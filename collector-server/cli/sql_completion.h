/* Words that the SQL shell completes: keywords, tables, columns, SQL functions, shipped queries and
 * dot commands. Inside quotes it completes the names of recorded functions. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sj_word_list {
    char **words; /* owned, sorted, without duplicates */
    size_t count, capacity;
} sj_word_list;

/* Collects the words that begin with `prefix`, at most a few hundred. If `quoted`, these are names
 * of recorded functions. If memory runs out, the list is shorter. */
void sj_sql_complete(sqlite3 *database, const char *prefix, bool quoted, sj_word_list *list);
void sj_word_list_deinit(sj_word_list *list);

#endif
