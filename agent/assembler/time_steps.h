/* The steps in which the times of calls are kept. Times are rounded down on the absolute clock, so
 * that order holds, a sum of durations stays unbiased, and what two threads did at one moment stays
 * at one moment. */
#ifndef SJ_AGENT_ASSEMBLER_TIME_STEPS_H
#define SJ_AGENT_ASSEMBLER_TIME_STEPS_H

#include <stdint.h>

typedef struct sj_time_steps {
    uint64_t step;    /* ticks */
    uint64_t inverse; /* 2^64 / step, rounded up; 0: every tick is kept */
} sj_time_steps;

/* sj_time_steps_of are steps of `step` ticks; of 0 or 1, every tick. */
static inline sj_time_steps sj_time_steps_of(uint32_t step)
{
    return step > 1 ? (sj_time_steps){.step = step, .inverse = UINT64_MAX / step + 1}
                    : (sj_time_steps){.step = 1};
}

/* sj_time_steps_floor is the last multiple of the step that is not after `ticks`. The inverse is
 * too large by less than one part in 2^64 / step, so the quotient is right or one too large; then
 * the rest wraps. */
static inline uint64_t sj_time_steps_floor(const sj_time_steps *steps, uint64_t ticks)
{
    if (steps->inverse == 0) {
        return ticks;
    }
    const uint64_t quotient = (uint64_t)((unsigned __int128)ticks * steps->inverse >> 64);
    const uint64_t floor = quotient * steps->step;
    return floor <= ticks ? floor : floor - steps->step;
}

#endif
