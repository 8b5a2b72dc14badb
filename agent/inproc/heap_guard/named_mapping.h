/* Memory that outlives the agent in the program and is found again by its name: data, then code. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H
#define SJ_AGENT_INPROC_HEAP_GUARD_NAMED_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* sj_named_mapping_find returns the data of the mapping that an agent made; NULL: there is none. */
void *sj_named_mapping_find(const char *name);

/* sj_named_mapping_make maps zeroed memory, of whole pages, all of which can be written. NULL: no
 * memory. */
void *sj_named_mapping_make(const char *name, size_t data_bytes, size_t code_bytes);

/* sj_named_mapping_seal makes the code executable, and no longer writable. False: that is refused;
 * the mapping is gone. */
bool sj_named_mapping_seal(void *mapping, size_t data_bytes, size_t code_bytes);

#endif
