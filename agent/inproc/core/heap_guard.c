/* The monitor of freed memory (agent/inproc/heap_guard). */
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/link/conversation.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/heap_guard/heap_guard.h"

/* Runs before plans are applied, and again in each later conversation. At first the threads of a
 * launched program do not run yet. Later a tracer writes the prepared changes. */
static void prepare(void)
{
    sj_agent_state *state = &sojourn_agent_state;
    static bool is_later;
    const bool prepare_only = is_later || state->prepare_only != 0;
    is_later = true;
    atomic_fetch_add(&state->changing, 1); /* tracers read these tables, too */
    (void)!sj_heap_guard_prepare(state->runtime_directory, sj_conversation_zombies_name(),
                                 prepare_only);
    sj_heap_guard_get_tables(&state->heap_allocating, &state->heap_residue);
    atomic_fetch_add(&state->changing, 1);
}

/* Starts the heap guard in a forked child. The child has the tables of its parent, which tracers
 * have read already. */
static void rejoin(void)
{
    sj_heap_guard_rejoin(sojourn_agent_state.runtime_directory, sj_conversation_zombies_name());
}

/* It has no `stop`: a detach calls sj_heap_guard_detach (agent/attach/detach.c). */
const sj_monitor sj_monitor_heap_guard = {.bit = SJ_LINK_RUNTIME_ZOMBIES,
                                          .name = "zombies",
                                          .prepare = prepare,
                                          .on_modules = sj_heap_guard_list_modules,
                                          .after_fork = sj_heap_guard_after_fork,
                                          .rejoin = rejoin};
