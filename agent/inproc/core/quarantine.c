/* The part of the monitor of freed memory that is left while the program runs on. */
#include "agent/inproc/core/monitor.h"

#include "agent/inproc/heap_guard/zombies.h"

const sj_monitor sj_monitor_quarantine = {.bit = SJ_LINK_RUNTIME_ZOMBIES,
                                          .name = "quarantine",
                                          .start = sj_zombies_has_quarantine,
                                          .stop = sj_zombies_end_quarantine};
