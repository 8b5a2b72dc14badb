/* How long all threads of a tracee were stopped. */
#ifndef SJ_AGENT_ATTACH_STOP_CLOCK_H
#define SJ_AGENT_ATTACH_STOP_CLOCK_H

#include <stdint.h>

/* A stop of all threads: when it began, by the wall and by this thread's own time. */
typedef struct sj_stop_clock {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} sj_stop_clock;

/* sj_stop_clock_start starts the clock; sj_stop_clock_read replaces both times by what has passed.
 */
void sj_stop_clock_start(sj_stop_clock *clock);
void sj_stop_clock_read(sj_stop_clock *clock);

#endif
