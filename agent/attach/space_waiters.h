/* Finds threads of a recorded process that wait for space for their records. */
#ifndef SJ_AGENT_ATTACH_SPACE_WAITERS_H
#define SJ_AGENT_ATTACH_SPACE_WAITERS_H

#include "agent/abi/agent_state.h"
#include "agent/ptrace/tracee.h"

/* True if a thread of the process waits in the agent for buffer space. It waits at most as long as
 * the policy allows (10 s). Reads /proc; threads may run. Not thread-safe. */
bool sj_space_waiters_exist(const sj_tracee *target, const sj_agent_state *state);

#endif
