/* The questions of schema/queries, compiled in, and the description of the schema.
 *
 * A question is an SQL text that starts with lines "-- KEY: VALUE": title, question, parameter
 * ("NAME = DEFAULT | meaning"), column ("NAME | meaning"), example. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H
#define SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_shipped_query {
    const char *name;
    const char *text;
} sj_shipped_query;

/* Borrows all of them, sorted by name. */
const sj_shipped_query *sj_shipped_queries(size_t *count);

/* Returns the query with that name, or NULL. */
const sj_shipped_query *sj_shipped_query_find(const char *name);

/* Copies value number `number` (from 0) of a key into `value`, cut to `capacity` - 1 bytes. Returns
 * false if there is none. */
bool sj_shipped_query_field(const sj_shipped_query *query, const char *key, unsigned number,
                            char *value, size_t capacity);

/* Copies the default of a parameter; returns false if it has none. */
bool sj_shipped_query_default(const sj_shipped_query *query, const char *parameter, char *value,
                              size_t capacity);

/* Borrows the description of all tables, columns and units (Markdown). */
const char *sj_schema_text(void);

#endif
