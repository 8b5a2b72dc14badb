/* Names of methods by the tables of their language's runtime, which stripped files have, too. */
#ifndef SJ_AGENT_ZOMBIES_METHOD_NAMES_H
#define SJ_AGENT_ZOMBIES_METHOD_NAMES_H

#include "proto/base/status.h"

#include <stdint.h>

typedef struct sj_method_names sj_method_names;

/* sj_method_names_new begins without files. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_names_new(sj_method_names **names);

/* sj_method_names_free; NULL is allowed. */
void sj_method_names_free(sj_method_names *names);

/* sj_method_names_find returns the name of the method in whose code `offset` of the file at `path`
 * lies; NULL: none, or the file cannot be read. Borrowed until the names are freed. Blocking: a
 * file is read when it is first asked for. One thread. */
const char *sj_method_names_find(sj_method_names *names, const char *path, uint64_t offset);

#endif
