/* Muted Java methods: their probes record nothing for now. A tracer writes one byte per function
 * (abi/agent_state.h). Removing probes from the class would not be enough: a running method
 * continues with its old code, so probes in its loop would stay. */
#ifndef SJ_AGENT_INPROC_JVM_MUTED_H
#define SJ_AGENT_INPROC_JVM_MUTED_H

#include "agent/abi/agent_state.h"

#include <stdbool.h>
#include <stddef.h>

/* Allocates the table and stores its address in the agent's state. A second call does nothing. If
 * out of memory, no method can be muted. Call it before methods have probes. Not thread-safe. */
void sj_muted_init(sj_agent_state *state);

/* Mutes all functions whose id is less than `end`. */
void sj_muted_add_below(const sj_agent_state *state, uint32_t end);

/* Frees the table. No other thread may use it now. */
void sj_muted_deinit(sj_agent_state *state);

/* True if a function is muted. Thread-safe. Takes no lock. */
static inline bool sj_muted_has(const sj_agent_state *state, uint32_t function)
{
    const uint8_t *muted = (const uint8_t *)(uintptr_t)state->muted_functions;
    return muted != NULL && function < SJ_AGENT_STATE_MUTED_FUNCTIONS &&
           __atomic_load_n(&muted[function], __ATOMIC_RELAXED) != 0;
}

#endif
