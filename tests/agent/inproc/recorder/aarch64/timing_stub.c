/* untimed_records.c calls this to decide which calls are timed. No test here reaches it. */
#include "agent/drain/call_timing.h"

#include <stdlib.h>

void sj_call_timing_add(sj_call_timing *timing, uint32_t function, uint64_t ticks, uint64_t end48)
{
    (void)timing;
    (void)function;
    (void)ticks;
    (void)end48;
    abort();
}

void sj_call_timing_late(sj_call_timing *timing, uint32_t function, uint32_t stretch)
{
    (void)timing;
    (void)function;
    (void)stretch;
    abort();
}

void sj_call_timing_on_time(sj_call_timing *timing, uint32_t function)
{
    (void)timing;
    (void)function;
    abort();
}
