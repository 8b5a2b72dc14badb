/* Maps memory that stays in the program when the agent is unloaded. A later agent finds the mapping
 * by its name. A mapping begins with data; its code follows. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H
#define SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the start of the mapping that an earlier agent created, or NULL. */
void *sj_named_mapping_find(const char *name);

/* Maps zeroed, writable memory. Both sizes are multiples of the page size. Returns NULL if the
 * kernel refuses. */
void *sj_named_mapping_new(const char *name, size_t data_bytes, size_t code_bytes);

/* Makes the code executable and read-only. If the kernel refuses, unmaps data and code and returns
 * false. */
bool sj_named_mapping_seal(void *mapping, size_t data_bytes, size_t code_bytes);

#endif
