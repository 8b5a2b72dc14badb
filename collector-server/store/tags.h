/* Tags as devices send them: "key=value". */
#ifndef SJ_COLLECTOR_SERVER_STORE_TAGS_H
#define SJ_COLLECTOR_SERVER_STORE_TAGS_H

#include <stddef.h>

/* sj_tags_json makes the JSON object of `count` texts; the caller releases it with sqlite3_free.
 * NULL when memory is short. Any thread. */
char *sj_tags_json(char **tags, size_t count);

#endif
