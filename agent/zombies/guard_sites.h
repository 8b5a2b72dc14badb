/* Finds the addresses of functions whose allocations are always guarded. */
#ifndef SJ_AGENT_ZOMBIES_GUARD_SITES_H
#define SJ_AGENT_ZOMBIES_GUARD_SITES_H

#include "agent/abi/zombies.h"

#include <sys/types.h>

/* Adds the functions of a module that match a pattern (sj_zombie_guard.callers) to the region's
 * sites. Also reads a separate debug file. Does not add a site twice. The region has at most
 * SJ_ZOMBIE_SITES sites. Ignores files that cannot be read. Blocks: reads files. Not
 * thread-safe. */
void sj_guard_sites_add(sj_zombie_region *region, const char *patterns, uint64_t bias,
                        const char *path);

/* Calls sj_guard_sites_add for all modules that a process has mapped. */
void sj_guard_sites_add_mapped(sj_zombie_region *region, const char *patterns, pid_t pid);

#endif
