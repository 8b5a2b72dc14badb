/* Finds the modules of a process that define its allocator. */
#ifndef SJ_AGENT_ZOMBIES_ALLOCATOR_H
#define SJ_AGENT_ZOMBIES_ALLOCATOR_H

#include "agent/abi/zombies.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct sj_allocator {
    char library[PATH_MAX]; /* Path of the C library; "" if the process has none. */
    /* Path of another module that defines malloc; "" if only the C library defines it. */
    char allocator[PATH_MAX];
    /* Path of the C++ library; "" if the process has none, or if the allocator defines operator
     * new. */
    char operators[PATH_MAX];
    bool is_musl;    /* True if `library` is musl's. */
    bool is_program; /* True if `allocator` is the executable. */
    sj_zombie_refusal
        why_not; /* Why the allocator cannot be patched; SJ_ZOMBIE_MONITORED if it can. */
} sj_allocator;

/* A cache of what the files of modules define. Not thread-safe. */
typedef struct sj_allocator_files sj_allocator_files;

/* Finds the allocator among the modules that a process has mapped. If several libraries define
 * malloc, chooses the one at the lowest address; the agent, which knows the loader's order,
 * verifies the choice. `*files` is the cache; it is NULL at first. Blocks for milliseconds if files
 * are not cached. */
void sj_allocator_find(sj_allocator_files **files, pid_t pid, sj_allocator *found);

/* Frees the cache. `files` may be NULL. */
void sj_allocator_files_free(sj_allocator_files *files);

#endif
