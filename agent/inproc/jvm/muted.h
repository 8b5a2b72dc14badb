/* Java methods whose probes record nothing for now: a byte by function, which a tracer writes
 * (abi/agent_state.h). Frames of a method keep the code that they were entered with, so that a
 * class that loses its probes is no help where a loop stands in a method of it. */
#ifndef SJ_AGENT_INPROC_JVM_MUTED_H
#define SJ_AGENT_INPROC_JVM_MUTED_H

#include "agent/abi/agent_state.h"

#include <stdbool.h>
#include <stddef.h>

/* sj_muted_make makes the table, which the agent's state then has; again: nothing. Without memory
 * no method can be muted. One thread, before methods have probes. */
void sj_muted_make(sj_agent_state *state);

/* sj_muted_add_below mutes all functions below `end`. */
void sj_muted_add_below(const sj_agent_state *state, uint32_t end);

/* sj_muted_drop frees it. Nobody uses it any more. */
void sj_muted_drop(sj_agent_state *state);

/* sj_muted_has: any thread, no lock. */
static inline bool sj_muted_has(const sj_agent_state *state, uint32_t function)
{
    const uint8_t *muted = (const uint8_t *)(uintptr_t)state->muted_functions;
    return muted != NULL && function < SJ_AGENT_STATE_MUTED_FUNCTIONS &&
           __atomic_load_n(&muted[function], __ATOMIC_RELAXED) != 0;
}

#endif
