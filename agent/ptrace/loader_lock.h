/* The locks of the loader in a foreign process: a child that was forked while another thread was in
 * the loader has them held forever, by a thread that it does not have. Nothing may be loaded or
 * unloaded there: the thread that is made to would never come back. */
#ifndef SJ_AGENT_PTRACE_LOADER_LOCK_H
#define SJ_AGENT_PTRACE_LOADER_LOCK_H

#include "agent/ptrace/tracee.h"

/* sj_loader_lock_is_orphaned returns whether nobody will ever release one of them. False, too, when
 * the process has another C library than this one, whose locks are not known. */
bool sj_loader_lock_is_orphaned(const sj_tracee *target);

/* sj_loader_lock_find gives the address of the lock held by a thread that loads a module; a thread
 * that binds a call may wait for; 0: not known, as above. */
uint64_t sj_loader_lock_find(const sj_tracee *target);

/* sj_loader_lock_is_held returns whether a thread of the process holds one of the locks that begin
 * with that at `first`: from before it maps a module until that is initialised, and while it goes
 * over their list. False for 0. Threads are stopped. */
bool sj_loader_lock_is_held(const sj_tracee *target, uint64_t first);

/* sj_loader_lock_is_awaited returns whether a thread waits for the lock at `address`. Threads are
 * stopped. */
bool sj_loader_lock_is_awaited(const sj_tracee *target, uint64_t address);

#endif
