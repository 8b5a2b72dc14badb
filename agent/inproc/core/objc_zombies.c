/* The monitor of messages to freed Objective-C objects (agent/inproc/objc_zombies). */
#include "agent/inproc/objc_zombies/objc_zombies.h"
#include "agent/abi/agent_state.h"
#include "agent/inproc/core/monitor.h"

/* Starts the monitor. If dispatch is recorded, the monitor does not enter methods, because dispatch
 * registers methods by the code in the runtime's tables. */
static bool start_keeping(void)
{
    const bool is_started =
        sj_objc_zombies_start((sj_monitors_chosen() & SJ_LINK_RUNTIME_OBJC_DISPATCH) == 0);
    sojourn_agent_state.has_objects = is_started ? 1 : 0;
    return is_started;
}

static void stop_keeping(void)
{
    sojourn_agent_state.has_objects = 0;
    sj_objc_zombies_stop();
}

const sj_monitor sj_monitor_objc_zombies = {.bit = SJ_LINK_RUNTIME_OBJC_ZOMBIES,
                                            .name = "Objective-C zombies",
                                            .start = start_keeping,
                                            .on_modules = sj_objc_zombies_rebind_modules,
                                            .after_fork = sj_objc_zombies_after_fork,
                                            .stop = stop_keeping};
