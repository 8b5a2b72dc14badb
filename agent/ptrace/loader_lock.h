/* The locks of the loader in a foreign process. If a process forks while another of its threads is
 * in the loader, the locks stay locked forever in the child: the thread that owns them does not
 * exist there. A thread of that child that loads or unloads a module never returns. */
#ifndef SJ_AGENT_PTRACE_LOADER_LOCK_H
#define SJ_AGENT_PTRACE_LOADER_LOCK_H

#include "agent/ptrace/tracee.h"

/* True if one of the locks will never be released, because its owner does not exist. Also returns
 * false if the place of the locks is not known: it is known only if the process has the same loader
 * as this process. */
bool sj_loader_lock_is_orphaned(const sj_tracee *target);

/* Returns the address of the first of the locks, which a thread holds while it loads a module. A
 * thread may wait for this lock while the loader resolves a symbol for it (lazy binding). Returns 0
 * if the process has another loader than this process. */
uint64_t sj_loader_lock_find(const sj_tracee *target);

/* True if a thread of the process holds one of the locks. `first` is the result of
 * sj_loader_lock_find. A thread holds them from before it maps a module until the module is
 * initialised, and while it walks the list of modules. Returns false if `first` is 0. The threads
 * must be stopped. */
bool sj_loader_lock_is_held(const sj_tracee *target, uint64_t first);

/* True if a thread waits for the lock at `address`. Returns false if `address` is 0. The threads
 * must be stopped. */
bool sj_loader_lock_is_awaited(const sj_tracee *target, uint64_t address);

#endif
