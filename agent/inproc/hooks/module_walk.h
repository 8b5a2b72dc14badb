/* Walks the loader's list of modules. */
#ifndef SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H
#define SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H

#include <link.h>
#include <stddef.h>

/* Calls dl_iterate_phdr and returns its result. Blocks the thread's signals meanwhile, except those
 * of faults: if a handler forked, the lock of dl_iterate_phdr would stay locked in the child for
 * ever. Blocks no signals in a process that may make no system calls. Holds the lock of
 * dl_iterate_phdr while `visit` runs, so `visit` must be short. */
int sj_module_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                   void *context);

#endif
