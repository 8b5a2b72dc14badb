/* Finds a thread of a running process that can be made to call a function. */
#ifndef SJ_AGENT_PTRACE_SAFEPOINT_H
#define SJ_AGENT_PTRACE_SAFEPOINT_H

#include "agent/ptrace/unwinder.h"

/* Stops one thread that has enough free stack and holds none of the locks that dlopen and dlclose
 * take. These are the locks of the loader, the allocator and fork. The other threads continue to
 * run. `*thread` is the index of the stopped thread. Returns SJ_ETIMEDOUT if no thread met these
 * conditions within 5 s. Returns SJ_EUNSUPPORTED if a lock of the loader will never be released
 * (loader_lock.h). Returns SJ_ECLOSED if the process has ended. */
SJ_MUST_CHECK sj_status sj_safepoint_find(sj_tracee *target, sj_unwinder *unwinder, size_t *thread);

/* True if the stack with the stack pointer `sp` has enough free space for sj_inferior_call_run. */
bool sj_safepoint_has_space(const sj_tracee *target, uint64_t sp);

#endif
