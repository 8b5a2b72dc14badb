#include "collector-server/cli/sql_completion.h"

#include "collector-server/query/shipped_queries.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_WORDS = 400 };

static void add_word(sj_word_list *list, const char *word, const char *prefix)
{
    if (strncasecmp(word, prefix, strlen(prefix)) != 0 || list->count == MOST_WORDS) {
        return;
    }
    for (size_t i = 0; i < list->count; ++i) {
        if (strcmp(list->words[i], word) == 0) {
            return;
        }
    }
    if (sj_array_reserve(&list->words, &list->capacity, list->count, 1, sizeof(*list->words)) !=
        SJ_OK) {
        return;
    }
    char *copy = strdup(word);
    if (copy != NULL) {
        list->words[list->count++] = copy;
    }
}

typedef struct word_search {
    sj_word_list *list;
    const char *prefix;
} word_search;

static sj_status add_row(void *context, sqlite3_stmt *row)
{
    const word_search *search = context;
    const char *word = (const char *)sqlite3_column_text(row, 0);
    if (word != NULL) {
        add_word(search->list, word, search->prefix);
    }
    return SJ_OK;
}

/* Adds the first column of all rows of a query. Words that cannot be read are not proposed, because
 * a line that is being typed has no place for messages. */
static void add_rows(sqlite3 *database, const char *sql, sj_sql_binds binds, const char *prefix,
                     sj_word_list *list)
{
    word_search search = {.list = list, .prefix = prefix};
    (void)!sj_sql_each(database, sql, binds, add_row, &search, NULL);
}

static const char *const fixed_words[] = {
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "LEFT JOIN",
    "USING",
    "NATURAL",
    "DISTINCT",
    "UNION ALL",
    "WITH",
    "RECURSIVE",
    "AND",
    "NOT",
    "BETWEEN",
    "LIKE",
    "GLOB",
    "IS NULL",
    "EXISTS",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "count(",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "coalesce(",
    "DESC",
    "ASC",
    "OVER",
    "PARTITION BY",
    "EXPLAIN QUERY PLAN",
    "calls",
    "call_aggregate(",
    "call_groups(",
    "descendants(",
    "ancestors(",
    "siblings(",
    "sequence(",
    "contains(",
    "intervals_intersect(",
    "concurrency(",
    "coverage(",
    "call_tree(",
    "physical_tree(",
    "flame(",
    "open_paths(",
    "open_now(",
    "open_before(",
    "session_set(",
    "diff_functions(",
    "diff_tree(",
    "format_duration(",
    "histogram_quantile(",
    "histogram_merge(",
    "histogram(",
    "percentile(",
    "demangle(",
    ".help",
    ".tables",
    ".schema",
    ".mode",
    ".timer",
    ".wide",
    ".queries",
    ".query",
    ".quit",
};

static void add_fixed_words(const char *prefix, sj_word_list *list)
{
    for (size_t i = 0; i < sizeof(fixed_words) / sizeof(fixed_words[0]); ++i) {
        add_word(list, fixed_words[i], prefix);
    }
    size_t count;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    for (size_t i = 0; i < count; ++i) {
        add_word(list, queries[i].name, prefix);
    }
}

static int compare_words(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void sj_sql_complete(sqlite3 *database, const char *prefix, bool quoted, sj_word_list *list)
{
    static const char functions_sql[] =
        "SELECT DISTINCT name FROM functions WHERE name >= ?1 AND name < ?1 || char(1114111) "
        "ORDER BY name LIMIT 400";
    static const char columns_sql[] =
        "SELECT DISTINCT c.name FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c "
        "WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'";
    static const char calls_sql[] = "SELECT name FROM pragma_table_info('calls')";
    static const char tables_sql[] = "SELECT name FROM sqlite_schema WHERE type IN "
                                     "('table', 'view') AND name NOT LIKE 'sqlite_%'";
    const sj_sql_binds none = {0};
    *list = (sj_word_list){0};
    if (quoted) {
        add_rows(database, functions_sql, SJ_SQL_TEXT(prefix), prefix, list);
    } else {
        add_fixed_words(prefix, list);
        add_rows(database, tables_sql, none, prefix, list);
        add_rows(database, columns_sql, none, prefix, list);
        add_rows(database, calls_sql, none, prefix, list);
    }
    if (list->count > 1) {
        qsort(list->words, list->count, sizeof(*list->words), compare_words);
    }
}

void sj_word_list_deinit(sj_word_list *list)
{
    for (size_t i = 0; i < list->count; ++i) {
        free(list->words[i]);
    }
    free(list->words);
    *list = (sj_word_list){0};
}
