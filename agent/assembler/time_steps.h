/* Steps in which the times of calls are kept. Each time is rounded down to a multiple of the step,
 * counted from 0 of the clock, not from the start of the call. So order is kept, a sum of durations
 * stays unbiased, and equal times of two threads stay equal. */
#ifndef SJ_AGENT_ASSEMBLER_TIME_STEPS_H
#define SJ_AGENT_ASSEMBLER_TIME_STEPS_H

#include <stdint.h>

typedef struct sj_time_steps {
    uint64_t step;    /* ticks */
    uint64_t inverse; /* 2^64 / step, rounded up; 0: every tick is kept */
} sj_time_steps;

/* Returns steps of `step` ticks; for 0 or 1 every tick is kept. */
static inline sj_time_steps sj_time_steps_of(uint32_t step)
{
    return step > 1 ? (sj_time_steps){.step = step, .inverse = UINT64_MAX / step + 1}
                    : (sj_time_steps){.step = 1};
}

/* Returns the last multiple of the step that is not after `ticks`. The inverse is too large by less
 * than one part in 2^64 / step. So the quotient is right or too large by one. If it is too large,
 * its multiple exceeds `ticks`. */
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
