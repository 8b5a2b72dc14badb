/* Finds the addresses of functions whose allocations are always guarded. */
#ifndef SJ_AGENT_ZOMBIES_GUARD_SITES_H
#define SJ_AGENT_ZOMBIES_GUARD_SITES_H

#include "agent/abi/zombies.h"
#include "agent/objfile/elf_view.h"

#include <stdbool.h>
#include <sys/types.h>

/* Adds the functions of a module that match a pattern (sj_zombie_guard.callers) to the region's
 * sites. Also reads a separate debug file. Does not add a site twice. The region has at most
 * SJ_ZOMBIE_SITES sites. Ignores files that cannot be read. Blocks while it reads files. Not
 * thread-safe. */
void sj_guard_sites_add(sj_zombie_region *region, const char *patterns, uint64_t bias,
                        const char *path);

/* An executable mapping of a module's file. */
typedef struct sj_guard_mapping {
    uint64_t low;
    uint64_t high;
    uint64_t offset; /* File offset of `low`. */
} sj_guard_mapping;

/* Writes the load bias of the mapping's module. Finds the right segment even if two segments share
 * a page of the file. Returns false if the file has no executable segment for the mapping. */
bool sj_guard_sites_find_bias(const sj_elf *elf, const sj_guard_mapping *mapping, uint64_t *bias);

/* Calls sj_guard_sites_add for all modules that a process has mapped. */
void sj_guard_sites_add_mapped(sj_zombie_region *region, const char *patterns, pid_t pid);

#endif
