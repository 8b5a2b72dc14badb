/* Renamed functions: turns the records of functions whose code a program made that of other methods
 * (sj_registry_put_in) into records of the functions named after those, from that moment on. One a
 * thread; the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_RENAMED_FUNCTIONS_H
#define SJ_AGENT_DRAIN_RENAMED_FUNCTIONS_H

#include "agent/abi/record.h"
#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"
#include "proto/base/hash_map.h"

typedef struct sj_renamed_since {
    sj_renamed_function renamed;
    uint32_t before; /* place + 1 of the function's change before; 0: none */
} sj_renamed_since;

/* Zeroed but for the first three is the right start. */
typedef struct sj_renamed_functions {
    sj_registry *registry; /* borrowed; NULL: no function is renamed */
    uint64_t process;
    sj_unhooked_set *freed; /* borrowed, learns which functions stand for which; NULL: none */
    size_t seen;            /* of the registry's list */
    sj_renamed_since *list; /* those of this process, by time */
    size_t count;
    size_t capacity;
    sj_hash_map last; /* by function: place + 1 of its last change */
    sj_hash_map open; /* by stack pointer: calls whose exit is to be renamed */
} sj_renamed_functions;

void sj_renamed_functions_deinit(sj_renamed_functions *renamed);

/* sj_renamed_functions_follow reads what is new in the registry, SJ_ENOMEM; afterwards
 * sj_renamed_functions_translate changes records in place, SJ_ENOMEM. Records that were written
 * after a change are read after it is in the registry. */
SJ_MUST_CHECK sj_status sj_renamed_functions_follow(sj_renamed_functions *renamed);
SJ_MUST_CHECK sj_status sj_renamed_functions_translate(sj_renamed_functions *renamed,
                                                       sj_record *records, uint32_t count);

#endif
