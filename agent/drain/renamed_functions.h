/* Renamed functions: handles functions whose code the program has given to other methods
 * (sj_registry_replace_methods). After such a change, the records of the code become records of a
 * function that is named after the new method. One for each thread; used by the drain's thread
 * only. */
#ifndef SJ_AGENT_DRAIN_RENAMED_FUNCTIONS_H
#define SJ_AGENT_DRAIN_RENAMED_FUNCTIONS_H

#include "agent/abi/record.h"
#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"
#include "proto/base/hash_map.h"

typedef struct sj_renamed_since {
    sj_renamed_function renamed;
    uint32_t before; /* index + 1 of the function's previous change; 0: none */
} sj_renamed_since;

/* Set the first three members and zero the others. */
typedef struct sj_renamed_functions {
    sj_registry *registry; /* borrowed; NULL: renames no function */
    uint64_t process;
    sj_unhooked_set *freed; /* borrowed; gets the replaced functions; NULL: none */
    size_t seen;            /* number of the registry's changes that were read */
    sj_renamed_since *list; /* changes of this process, by time */
    size_t count;
    size_t capacity;
    sj_hash_map last; /* by function: index + 1 of its last change */
    sj_hash_map open; /* by stack pointer: calls whose exit must be rewritten */
} sj_renamed_functions;

void sj_renamed_functions_deinit(sj_renamed_functions *renamed);

/* sj_renamed_functions_follow reads the registry's new changes. sj_renamed_functions_translate then
 * rewrites records in place. Both return SJ_ENOMEM if out of memory.
 *
 * A change is in the registry before the drain reads records that were written after it. */
SJ_MUST_CHECK sj_status sj_renamed_functions_follow(sj_renamed_functions *renamed);
SJ_MUST_CHECK sj_status sj_renamed_functions_translate(sj_renamed_functions *renamed,
                                                       sj_record *records, uint32_t count);

#endif
