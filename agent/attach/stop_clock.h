/* Measures how long all threads of a tracee were stopped. */
#ifndef SJ_AGENT_ATTACH_STOP_CLOCK_H
#define SJ_AGENT_ATTACH_STOP_CLOCK_H

#include <stdint.h>

/* Start of a stop of all threads: wall time, and CPU time of this thread. */
typedef struct sj_stop_clock {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} sj_stop_clock;

/* sj_stop_clock_start starts the clock. sj_stop_clock_read replaces both times by the time since
 * then. */
void sj_stop_clock_start(sj_stop_clock *clock);
void sj_stop_clock_read(sj_stop_clock *clock);

#endif
