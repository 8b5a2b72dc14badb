/* Runtimes that a process has loaded, as /proc shows from outside. Any thread. */
#ifndef SJ_AGENT_ATTACH_LIVE_RUNTIMES_H
#define SJ_AGENT_ATTACH_LIVE_RUNTIMES_H

#include <stdbool.h>
#include <sys/types.h>

/* sj_live_runtimes_are_bound returns whether a process has a runtime whose monitor is to run
 * whatever the policy asks for (sj_runtime.binds_attached); false also when that cannot be read. */
bool sj_live_runtimes_are_bound(pid_t pid);

/* sj_live_runtimes_are_joined does so for sj_runtime.joins_attached. */
bool sj_live_runtimes_are_joined(pid_t pid);

#endif
