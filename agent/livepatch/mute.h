/* Mutes methods of a JVM: their probes stay and record nothing (abi/agent_state.h). */
#ifndef SJ_AGENT_LIVEPATCH_MUTE_H
#define SJ_AGENT_LIVEPATCH_MUTE_H

#include "agent/livepatch/unhooked_set.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* Mutes methods of a process, or has their probes record again. All threads are stopped. Updates
 * `freed` unless it is NULL. `*stopped_ns` is the length of the stop. Blocks for milliseconds. The
 * rules about threads, and the other errors, are those of sj_hook_functions. Returns
 * SJ_EUNSUPPORTED, with nothing changed, if the agent has no table of muted methods. */
SJ_MUST_CHECK sj_status sj_mute_functions(pid_t pid, const uint32_t *functions, size_t count,
                                          bool is_muted, sj_unhooked_set *freed,
                                          uint64_t *stopped_ns, sj_error *error);

#endif
