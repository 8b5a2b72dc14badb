/* Return addresses of dispatched calls, put back on the stacks, so that nothing returns through the
 * agent any more (agent/abi/return_slots.h). */
#ifndef SJ_AGENT_ATTACH_RETURN_SLOTS_H
#define SJ_AGENT_ATTACH_RETURN_SLOTS_H

#include "agent/abi/agent_state.h"
#include "agent/ptrace/tracee.h"

/* sj_return_slots_restore does so for every call that is under way, on all stacks, those of
 * coroutines included. All threads are stopped; one that is in the agent's code may use a slot
 * again. SJ_EIO tables or stacks cannot be read, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_return_slots_restore(const sj_tracee *target,
                                                const sj_agent_state *state);

#endif
