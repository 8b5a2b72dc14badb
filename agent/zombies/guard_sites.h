/* Finds the addresses of functions whose allocations are always guarded. */
#ifndef SJ_AGENT_ZOMBIES_GUARD_SITES_H
#define SJ_AGENT_ZOMBIES_GUARD_SITES_H

#include "agent/abi/zombies.h"

#include <sys/types.h>

/* Adds functions of a module to the region's sites if a pattern matches them
 * (sj_zombie_guard.callers). It also reads a separate debug file. Known sites are not added again.
 * Sites beyond SJ_ZOMBIE_SITES are left out. Not thread-safe. */
void sj_guard_sites_add(sj_zombie_region *region, const char *patterns, uint64_t bias,
                        const char *path);

/* Does the same for all modules that a process has mapped. */
void sj_guard_sites_add_mapped(sj_zombie_region *region, const char *patterns, pid_t pid);

#endif
