/* The monitor of freed memory (agent/inproc/zombies). */
#include "agent/inproc/core/conversation.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/monitor.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/zombies/zombies.h"

#include <stddef.h>

static bool is_prepared;

/* Before plans are applied, and again in each later conversation. */
static void prepare_zombies(void)
{
    sj_zombies_find_code = sj_modules_find_original;
    is_prepared =
        sj_zombies_prepare(sojourn_agent_state.runtime_directory, sj_conversation_zombies_name());
}

static bool start_zombies(void)
{
    return is_prepared;
}

/* It cannot stop: guarded blocks may live as long as the program. */
const sj_monitor sj_monitor_zombies = {.bit = SJ_LINK_RUNTIME_ZOMBIES,
                                       .name = "zombies",
                                       .prepare = prepare_zombies,
                                       .start = start_zombies,
                                       .on_modules = sj_zombies_note_modules,
                                       .after_fork = sj_zombies_after_fork};
