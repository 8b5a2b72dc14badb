#include "collector-server/query/shipped_queries.h"

#include <stdio.h>
#include <string.h>

#include "collector-server/query/texts.inc"

const sj_shipped_query *sj_shipped_queries(size_t *count)
{
    *count = sizeof(queries) / sizeof(queries[0]);
    return queries;
}

const sj_shipped_query *sj_shipped_query_find(const char *name)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); ++i) {
        if (strcmp(queries[i].name, name) == 0) {
            return &queries[i];
        }
    }
    return NULL;
}

bool sj_shipped_query_field(const sj_shipped_query *query, const char *key, unsigned number,
                            char *value, size_t capacity)
{
    const size_t key_length = strlen(key);
    for (const char *line = query->text; strncmp(line, "-- ", 3) == 0;) {
        const char *end = strchr(line, '\n');
        if (end == NULL) {
            return false;
        }
        const char *name = line + 3;
        if (strncmp(name, key, key_length) == 0 && strncmp(name + key_length, ": ", 2) == 0 &&
            number-- == 0) {
            const char *text = name + key_length + 2;
            snprintf(value, capacity, "%.*s", (int)(end - text), text);
            return true;
        }
        line = end + 1;
    }
    return false;
}

bool sj_shipped_query_default(const sj_shipped_query *query, const char *parameter, char *value,
                              size_t capacity)
{
    char line[256];
    const size_t length = strlen(parameter);
    for (unsigned i = 0; sj_shipped_query_field(query, "parameter", i, line, sizeof(line)); ++i) {
        if (strncmp(line, parameter, length) != 0 || strncmp(line + length, " = ", 3) != 0) {
            continue;
        }
        const char *text = line + length + 3;
        const char *bar = strstr(text, " | ");
        snprintf(value, capacity, "%.*s", (int)(bar != NULL ? (size_t)(bar - text) : strlen(text)),
                 text);
        return true;
    }
    return false;
}

const char *sj_schema_text(void)
{
    return schema_text;
}
