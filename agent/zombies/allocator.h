/* Finds the modules of a process that define its allocator. */
#ifndef SJ_AGENT_ZOMBIES_ALLOCATOR_H
#define SJ_AGENT_ZOMBIES_ALLOCATOR_H

#include "agent/abi/zombies.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct sj_allocator {
    char library[PATH_MAX]; /* Path of the C library. "": the process has none. */
    /* Path of the module that defines malloc instead. "": the C library does. */
    char allocator[PATH_MAX];
    /* Path of the C++ library. "": there is none, or the allocator defines the operators. */
    char operators[PATH_MAX];
    bool is_program; /* True if the executable is the allocator. */
    sj_zombie_refusal why_not;
} sj_allocator;

/* Cache of facts about module files. Not thread-safe. */
typedef struct sj_allocator_files sj_allocator_files;

/* sj_allocator_find inspects the modules that a process has mapped. It caches facts about their
 * files in `*files`, which is NULL at first; sj_allocator_files_free releases them. If several
 * libraries define malloc, it chooses the first in memory; the agent, which knows the loader's
 * order, verifies that. Blocking: milliseconds for files that are not cached. */
void sj_allocator_find(sj_allocator_files **files, pid_t pid, sj_allocator *found);
void sj_allocator_files_free(sj_allocator_files *files);

#endif
