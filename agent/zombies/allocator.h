/* Which modules of a process define its allocator. */
#ifndef SJ_AGENT_ZOMBIES_ALLOCATOR_H
#define SJ_AGENT_ZOMBIES_ALLOCATOR_H

#include "agent/abi/zombies.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct sj_allocator {
    char library[PATH_MAX];   /* the C library; "": the process has none */
    char allocator[PATH_MAX]; /* that defines malloc in its place; "": the C library does */
    char operators[PATH_MAX]; /* the C++ library; "": none, or the allocator has operators */
    bool is_program;          /* the allocator is the executable */
    sj_zombie_refusal why_not;
} sj_allocator;

/* What is known of module files that were looked at; one thread. */
typedef struct sj_allocator_files sj_allocator_files;

/* sj_allocator_find looks at the modules that a process has mapped, and remembers what it has seen
 * of their files in `*files`, NULL at first; sj_allocator_files_free releases that. Of several
 * libraries that define malloc it takes the first in memory: the agent, which knows the loader's
 * order, checks. Blocking: milliseconds for files that it has not seen. */
void sj_allocator_find(sj_allocator_files **files, pid_t pid, sj_allocator *found);
void sj_allocator_files_free(sj_allocator_files *files);

#endif
