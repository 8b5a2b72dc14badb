/* Words that the SQL shell completes: keywords, tables, columns, functions of SQL, shipped queries,
 * dot commands, and inside of quotes the names of recorded functions. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_COMPLETION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sj_word_list {
    char **words; /* owned, sorted, each once */
    size_t count, capacity;
} sj_word_list;

/* sj_sql_complete collects what begins with `prefix`; `quoted`: names of recorded functions. At
 * most some hundred words. Memory that is missing shortens the list. */
void sj_sql_complete(sqlite3 *database, const char *prefix, bool quoted, sj_word_list *list);
void sj_word_list_deinit(sj_word_list *list);

#endif
