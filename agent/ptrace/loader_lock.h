/* The locks of the loader in a foreign process. If a child was forked while another thread was in
 * the loader, the child holds the locks forever: their owner does not exist there. Nothing may be
 * loaded or unloaded in that child, because the thread that does it would never return. */
#ifndef SJ_AGENT_PTRACE_LOADER_LOCK_H
#define SJ_AGENT_PTRACE_LOADER_LOCK_H

#include "agent/ptrace/tracee.h"

/* True if one of the locks will never be released. False also if the process has another C library
 * than this process: the place of its locks is then unknown. */
bool sj_loader_lock_is_orphaned(const sj_tracee *target);

/* Returns the address of the lock that a thread holds while it loads a module. A thread that binds
 * a call may wait for this lock. Returns 0 if unknown, as above. */
uint64_t sj_loader_lock_find(const sj_tracee *target);

/* True if a thread of the process holds one of the locks, the first of which is at `first`. A
 * thread holds them from before it maps a module until the module is initialised, and while it
 * walks the list of modules. Returns false if `first` is 0. The threads must be stopped. */
bool sj_loader_lock_is_held(const sj_tracee *target, uint64_t first);

/* True if a thread waits for the lock at `address`. The threads must be stopped. */
bool sj_loader_lock_is_awaited(const sj_tracee *target, uint64_t address);

#endif
