/* Limits that a program sets for itself. The agent's memory counts against them, too. */
#ifndef SJ_AGENT_INPROC_CORE_LIMITS_H
#define SJ_AGENT_INPROC_CORE_LIMITS_H

#include "proto/base/status.h"

#include <stdint.h>
#include <sys/resource.h>

/* Redirects setrlimit and prlimit of the C library to the agent. Returns SJ_EUNSUPPORTED if their
 * code is not as expected. */
SJ_MUST_CHECK sj_status sj_limits_follow(void);

/* Releases address space of the arena before the process limits its own. The arena then takes at
 * most 64 MB, or an eighth of the limit if that is more. Thread slots whose own memory page exists
 * already stay. `process` is 0 or a process id. `limit` may be NULL, or any pointer that the kernel
 * refuses. Async-signal-safe. */
void sj_limits_on_change(uint64_t process, uint64_t resource, const struct rlimit *limit);

#endif
