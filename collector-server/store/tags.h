/* Tags as devices send them: "key=value". */
#ifndef SJ_COLLECTOR_SERVER_STORE_TAGS_H
#define SJ_COLLECTOR_SERVER_STORE_TAGS_H

#include <stddef.h>

/* Returns a JSON object of `count` texts, or NULL if out of memory. The caller frees it with
 * sqlite3_free. Thread-safe. */
char *sj_tags_json(char **tags, size_t count);

#endif
