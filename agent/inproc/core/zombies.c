/* The monitor of freed memory (agent/inproc/heap_guard). */
#include "agent/inproc/core/conversation.h"
#include "agent/inproc/core/monitor.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/heap_guard/zombies.h"

/* Before plans are applied, and again in each later conversation. The program's own threads do not
 * run yet when it is launched; later, a tracer writes what is prepared. */
static void prepare_zombies(void)
{
    sj_agent_state *state = &sojourn_agent_state;
    static bool is_later;
    const bool prepare_only = is_later || state->prepare_only != 0;
    is_later = true;
    atomic_fetch_add(&state->changing, 1); /* tracers read these tables, too */
    (void)!sj_zombies_prepare(state->runtime_directory, sj_conversation_zombies_name(),
                              prepare_only);
    sj_zombies_get_tables(&state->heap_takers, &state->heap_custody);
    atomic_fetch_add(&state->changing, 1);
}

/* The child has its parent's tables, which tracers have read. */
static void rejoin_zombies(void)
{
    sj_zombies_rejoin(sojourn_agent_state.runtime_directory, sj_conversation_zombies_name());
}

/* It has no `stop`: detaching leaves the heap by itself (agent/attach/detach.c). */
const sj_monitor sj_monitor_zombies = {.bit = SJ_LINK_RUNTIME_ZOMBIES,
                                       .name = "zombies",
                                       .prepare = prepare_zombies,
                                       .on_modules = sj_zombies_note_modules,
                                       .after_fork = sj_zombies_after_fork,
                                       .rejoin = rejoin_zombies};
