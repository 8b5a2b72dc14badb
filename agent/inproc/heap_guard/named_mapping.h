/* Memory that stays in the program when the agent is unloaded, and that a later agent finds by its
 * name. Data comes first, then code. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H
#define SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the data of the mapping that an earlier agent created, or NULL. */
void *sj_named_mapping_find(const char *name);

/* Maps zeroed, writable memory. Both sizes are whole pages. Returns NULL if out of memory. */
void *sj_named_mapping_new(const char *name, size_t data_bytes, size_t code_bytes);

/* Makes the code executable and not writable. If the kernel refuses, unmaps all of it and returns
 * false. */
bool sj_named_mapping_seal(void *mapping, size_t data_bytes, size_t code_bytes);

#endif
