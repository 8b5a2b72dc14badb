/* A thread of a running process in which foreign functions can be called. */
#ifndef SJ_AGENT_CONTROL_SAFE_POINT_H
#define SJ_AGENT_CONTROL_SAFE_POINT_H

#include "agent/control/unwinder.h"

/* sj_safe_point_find stops one thread where it holds none of the locks that dlopen and dlclose
 * take (loader, allocator, fork) and has room on its stack; the others run on. `*thread` is its
 * index. SJ_ETIMEDOUT no thread came to such a point, SJ_EUNSUPPORTED none ever
 * will (loader_lock.h), SJ_ECLOSED the process has ended. */
SJ_MUST_CHECK sj_status sj_safe_point_find(sj_target *target, sj_unwinder *unwinder,
                                           size_t *thread);

/* sj_safe_point_has_room tells whether a stopped thread's stack has room for sj_machine_call. */
bool sj_safe_point_has_room(const sj_target *target, uint64_t sp);

#endif
