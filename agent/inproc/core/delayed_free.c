/* Delayed frees are a separate monitor, because a detach ends them while the program runs. */
#include "agent/inproc/core/monitor.h"

#include "agent/inproc/heap_guard/heap_guard.h"

const sj_monitor sj_monitor_delayed_free = {.bit = SJ_LINK_RUNTIME_ZOMBIES,
                                            .name = "delayed frees",
                                            .start = sj_heap_guard_delays_frees,
                                            .stop = sj_heap_guard_end_delays};
