#include "agent/inproc/jvm/muted.h"

#include "agent/inproc/recorder/sys.h"

void sj_muted_init(sj_agent_state *state)
{
    if (state->muted_functions == 0) {
        state->muted_functions =
            (uint64_t)(uintptr_t)sj_sys_allocate(SJ_AGENT_STATE_MUTED_FUNCTIONS);
    }
}

void sj_muted_add_below(const sj_agent_state *state, uint32_t end)
{
    uint8_t *muted = (uint8_t *)(uintptr_t)state->muted_functions;
    for (uint32_t i = 0; muted != NULL && i < end && i < SJ_AGENT_STATE_MUTED_FUNCTIONS; i++) {
        __atomic_store_n(&muted[i], 1, __ATOMIC_RELAXED);
    }
}

void sj_muted_deinit(sj_agent_state *state)
{
    if (state->muted_functions != 0) {
        (void)sj_sys_unmap((void *)(uintptr_t)state->muted_functions,
                           SJ_AGENT_STATE_MUTED_FUNCTIONS);
        state->muted_functions = 0;
    }
}
