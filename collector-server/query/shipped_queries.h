/* The questions of schema/queries, compiled in, and the description of the schema.
 *
 * A question is a text of SQL that begins with lines "-- KEY: VALUE": title, question, parameter
 * ("NAME = DEFAULT | meaning"), column ("NAME | meaning"), example. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H
#define SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_shipped_query {
    const char *name;
    const char *text;
} sj_shipped_query;

/* sj_shipped_queries borrows all of them, in order of names. */
const sj_shipped_query *sj_shipped_queries(size_t *count);

/* sj_shipped_query_find returns the query of that name, or NULL. */
const sj_shipped_query *sj_shipped_query_find(const char *name);

/* sj_shipped_query_field copies the `number`th (from 0) value of a key into `value`, cut to
 * `capacity` - 1 bytes; false when there is none. */
bool sj_shipped_query_field(const sj_shipped_query *query, const char *key, unsigned number,
                            char *value, size_t capacity);

/* sj_shipped_query_default copies the default of a parameter; false when it has none. */
bool sj_shipped_query_default(const sj_shipped_query *query, const char *parameter, char *value,
                              size_t capacity);

/* sj_schema_text borrows the description of all tables, columns and units (Markdown). */
const char *sj_schema_text(void);

#endif
