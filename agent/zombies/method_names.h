/* Finds names of methods in the tables of their runtime (agent/runtimes). Stripped files also have
 * these tables. */
#ifndef SJ_AGENT_ZOMBIES_METHOD_NAMES_H
#define SJ_AGENT_ZOMBIES_METHOD_NAMES_H

#include "proto/base/status.h"

#include <stdint.h>

typedef struct sj_method_names sj_method_names;

/* Creates an empty cache of files. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_names_new(sj_method_names **names);

/* Frees the cache and all names. `names` may be NULL. */
void sj_method_names_free(sj_method_names *names);

/* Returns the name of the method whose code contains the module offset `offset` in the file at
 * `path`. Returns NULL if no method does, or if the file cannot be read. The name is borrowed until
 * the cache is freed. Blocks at the first use, while it reads a file. Not thread-safe. */
const char *sj_method_names_find(sj_method_names *names, const char *path, uint64_t offset);

#endif
