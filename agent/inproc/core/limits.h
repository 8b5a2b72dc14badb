/* Limits that a program sets for itself: what the agent has counts against them, too. */
#ifndef SJ_AGENT_INPROC_CORE_LIMITS_H
#define SJ_AGENT_INPROC_CORE_LIMITS_H

#include "proto/base/status.h"

#include <stdint.h>
#include <sys/resource.h>

/* sj_limits_follow leads setrlimit and prlimit of the C library through the agent. SJ_EUNSUPPORTED:
 * their code is not as expected. */
SJ_MUST_CHECK sj_status sj_limits_follow(void);

/* sj_limits_on_change gives back address space before the process limits its own: to 64 MB or an
 * eighth of the limit, where no more is in use. `process`: 0 or a process id. `limit`: may be NULL,
 * or anything else that the kernel refuses. Async-signal-safe. */
void sj_limits_on_change(uint64_t process, uint64_t resource, const struct rlimit *limit);

#endif
