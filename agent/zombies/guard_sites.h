/* Where the functions lie whose calls of the allocator are guarded always. */
#ifndef SJ_AGENT_ZOMBIES_GUARD_SITES_H
#define SJ_AGENT_ZOMBIES_GUARD_SITES_H

#include "agent/abi/zombies.h"

#include <sys/types.h>

/* sj_guard_sites_add adds to a region's sites the functions of a module that one of the patterns
 * fits (sj_zombie_guard.callers), those of a separate debug file included. What is there already is
 * not added again; what there is no room for is left out. One thread at a time. */
void sj_guard_sites_add(sj_zombie_region *region, const char *patterns, uint64_t bias,
                        const char *path);

/* sj_guard_sites_add_mapped does so for all modules that a process has mapped. */
void sj_guard_sites_add_mapped(sj_zombie_region *region, const char *patterns, pid_t pid);

#endif
