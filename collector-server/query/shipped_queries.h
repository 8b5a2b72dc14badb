/* The shipped queries (schema/queries), compiled in, and the description of the schema.
 *
 * A shipped query is an SQL text that starts with lines "-- KEY: VALUE". The keys are title,
 * question, parameter ("NAME = DEFAULT | meaning"), column ("NAME | meaning") and example. Queries
 * of a cluster (schema/cluster_queries) also have the keys needs and refused. The functions are
 * thread-safe and do not block. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H
#define SJ_COLLECTOR_SERVER_QUERY_SHIPPED_QUERIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_shipped_query {
    const char *name;
    const char *text;
} sj_shipped_query;

/* Returns all shipped queries, sorted by name, and writes their number to `count`. The array is
 * constant. */
const sj_shipped_query *sj_shipped_queries(size_t *count);

/* Returns NULL if no shipped query has the name. */
const sj_shipped_query *sj_shipped_query_find(const char *name);

/* Copies a value of a key to `value`, cut to `capacity` - 1 bytes. `number` counts the lines with
 * that key from 0. Returns false if the query has no such line. */
bool sj_shipped_query_field(const sj_shipped_query *query, const char *key, unsigned number,
                            char *value, size_t capacity);

/* Copies the default of a parameter to `value`, cut to `capacity` - 1 bytes. Returns false if the
 * parameter has no default. */
bool sj_shipped_query_default(const sj_shipped_query *query, const char *parameter, char *value,
                              size_t capacity);

/* Returns the description of all tables, columns and units (Markdown), a constant. */
const char *sj_schema_text(void);

#endif
