#include "agent/attach/stop_clock.h"

#include "agent/host/clock.h"

#include <time.h>

void sj_stop_clock_start(sj_stop_clock *clock)
{
    *clock = (sj_stop_clock){.wall_ns = sj_clock_ns(CLOCK_MONOTONIC),
                             .cpu_ns = sj_clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

void sj_stop_clock_read(sj_stop_clock *clock)
{
    clock->wall_ns = sj_clock_ns(CLOCK_MONOTONIC) - clock->wall_ns;
    clock->cpu_ns = sj_clock_ns(CLOCK_THREAD_CPUTIME_ID) - clock->cpu_ns;
}
