/* Finds names of methods in the tables of their language's runtime, which stripped files have, too.
 */
#ifndef SJ_AGENT_ZOMBIES_METHOD_NAMES_H
#define SJ_AGENT_ZOMBIES_METHOD_NAMES_H

#include "proto/base/status.h"

#include <stdint.h>

typedef struct sj_method_names sj_method_names;

/* Creates an empty cache of files. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_method_names_new(sj_method_names **names);

/* Frees the cache and all names. NULL is allowed. */
void sj_method_names_free(sj_method_names *names);

/* Returns the name of the method whose code contains `offset` of the file at `path`. Returns NULL
 * if there is none, or if the file cannot be read. The name is borrowed until the cache is freed.
 * Blocking: reads a file at its first use. Not thread-safe. */
const char *sj_method_names_find(sj_method_names *names, const char *path, uint64_t offset);

#endif
