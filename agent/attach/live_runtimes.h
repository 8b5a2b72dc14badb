/* Finds the runtimes that a process has loaded, from /proc. Thread-safe. */
#ifndef SJ_AGENT_ATTACH_LIVE_RUNTIMES_H
#define SJ_AGENT_ATTACH_LIVE_RUNTIMES_H

#include <stdbool.h>
#include <sys/types.h>

/* True if a process has a runtime whose monitor always runs, whatever the policy asks for
 * (sj_runtime.binds_attached). Also returns false if /proc cannot be read. */
bool sj_live_runtimes_are_bound(pid_t pid);

/* True if a process has a runtime that a thread of the agent joins after an attach
 * (sj_runtime.joins_attached). Also returns false if /proc cannot be read. */
bool sj_live_runtimes_are_joined(pid_t pid);

#endif
