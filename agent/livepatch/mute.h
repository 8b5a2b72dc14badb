/* Methods of a JVM whose probes stay where they are and record nothing (abi/agent_state.h). */
#ifndef SJ_AGENT_LIVEPATCH_MUTE_H
#define SJ_AGENT_LIVEPATCH_MUTE_H

#include "agent/livepatch/unhooked_set.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* sj_mute_functions mutes methods in a process, or has their probes record again, with all threads
 * stopped, and notes that in `freed` (NULL: nowhere). `*stopped_ns` is how long. Blocking:
 * milliseconds. As sj_hook_functions; SJ_EUNSUPPORTED the agent has no room for that, and nothing
 * was changed. */
SJ_MUST_CHECK sj_status sj_mute_functions(pid_t pid, const uint32_t *functions, size_t count,
                                          bool is_muted, sj_unhooked_set *freed,
                                          uint64_t *stopped_ns, sj_error *error);

#endif
