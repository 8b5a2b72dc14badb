/* Restores return addresses of dispatched calls on the stacks, so that no call returns through the
 * agent (agent/abi/return_slots.h). */
#ifndef SJ_AGENT_ATTACH_RETURN_SLOTS_H
#define SJ_AGENT_ATTACH_RETURN_SLOTS_H

#include "agent/abi/agent_state.h"
#include "agent/ptrace/tracee.h"

/* Restores the return address of every open call, on all stacks, including stacks of coroutines.
 * All threads are stopped. A thread that is in the agent's code may fill a slot when it runs again,
 * so its call may still return through the agent. Returns SJ_EIO if tables or stacks cannot be
 * accessed, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_return_slots_restore(const sj_tracee *target,
                                                const sj_agent_state *state);

#endif
