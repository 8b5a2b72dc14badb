/* Walks the loader's list of modules. */
#ifndef SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H
#define SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H

#include <link.h>
#include <stddef.h>

/* Calls dl_iterate_phdr and returns its result. Meanwhile the thread's signals are blocked, except
 * those of faults: a handler that forks would leave the loader's lock locked in its child for ever.
 * In a process that may make no system calls, no signals are blocked. Takes the lock of
 * dl_iterate_phdr, so `visit` should be short. */
int sj_module_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                   void *context);

#endif
