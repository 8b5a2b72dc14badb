/* Walks the loader's list of modules. */
#ifndef SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H
#define SJ_AGENT_INPROC_HOOKS_MODULE_WALK_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls dl_iterate_phdr and returns its result. Blocks the thread's signals meanwhile, except those
 * of faults: if a handler forked, the lock of dl_iterate_phdr would stay locked in the child for
 * ever. Blocks no signals in a process that may make no system calls. Holds the lock of
 * dl_iterate_phdr while `visit` runs, so `visit` must be short. `visit` may walk the list itself.
 * Waits while another thread forks, for at most one second. */
int sj_module_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                   void *context);

/* Enclose a fork. No other thread walks the list by sj_module_walk in between, so the child does
 * not inherit the lock. sj_module_walk_begin_fork waits for walks, and returns false if one has not
 * ended within `wait_ns`. sj_module_walk_end_fork is called in the parent and in the child. */
bool sj_module_walk_begin_fork(uint64_t wait_ns);
void sj_module_walk_end_fork(bool is_child);

#endif
