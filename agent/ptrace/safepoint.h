/* A thread of a running process in which foreign functions can be called. */
#ifndef SJ_AGENT_PTRACE_SAFEPOINT_H
#define SJ_AGENT_PTRACE_SAFEPOINT_H

#include "agent/ptrace/unwinder.h"

/* sj_safepoint_find stops one thread where it holds none of the locks that dlopen and dlclose
 * take (loader, allocator, fork) and has room on its stack; the others run on. `*thread` is its
 * index. SJ_ETIMEDOUT no thread came to such a point, SJ_EUNSUPPORTED none ever
 * will (loader_lock.h), SJ_ECLOSED the process has ended. */
SJ_MUST_CHECK sj_status sj_safepoint_find(sj_tracee *target, sj_unwinder *unwinder, size_t *thread);

/* sj_safepoint_has_room returns whether a stopped thread's stack has room for sj_inferior_call_run.
 */
bool sj_safepoint_has_room(const sj_tracee *target, uint64_t sp);

#endif
