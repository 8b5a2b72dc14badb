/* Converts between ticks of a device's clock and the nanoseconds that the store writes. */
#ifndef SJ_COLLECTOR_SERVER_STORE_TICKS_H
#define SJ_COLLECTOR_SERVER_STORE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_tick_clock {
    uint64_t started_ticks;
    uint64_t numerator; /* ns = ticks * numerator / denominator */
    uint64_t denominator;
} sj_tick_clock;

/* True if conversions cannot overflow. */
static inline bool sj_tick_clock_is_sound(const sj_tick_clock *clock)
{
    return clock->numerator != 0 && clock->denominator != 0 &&
           clock->numerator <= INT64_MAX / clock->denominator && clock->started_ticks <= INT64_MAX;
}

/* Converts a duration to nanoseconds, rounded down. Results above INT64_MAX become INT64_MAX. */
static inline int64_t sj_ticks_span_ns(const sj_tick_clock *clock, uint64_t ticks)
{
    const uint64_t whole = ticks / clock->denominator;
    const uint64_t rest = ticks % clock->denominator * clock->numerator / clock->denominator;
    if (whole > (INT64_MAX - rest) / clock->numerator) {
        return INT64_MAX;
    }
    return (int64_t)(whole * clock->numerator + rest);
}

/* Converts a time to nanoseconds since the session's start. Earlier times are negative. */
static inline int64_t sj_ticks_at_ns(const sj_tick_clock *clock, uint64_t ticks)
{
    return ticks >= clock->started_ticks ? sj_ticks_span_ns(clock, ticks - clock->started_ticks)
                                         : -sj_ticks_span_ns(clock, clock->started_ticks - ticks);
}

/* Returns the smallest number of ticks that lasts at least `ns` nanoseconds. */
static inline uint64_t sj_ticks_in_ns(const sj_tick_clock *clock, int64_t ns)
{
    if (ns <= 0) {
        return 0;
    }
    const uint64_t whole = (uint64_t)ns / clock->numerator;
    const uint64_t rest = (uint64_t)ns % clock->numerator * clock->denominator;
    if (whole > (UINT64_MAX >> 1) / clock->denominator) {
        return UINT64_MAX >> 1;
    }
    return whole * clock->denominator + (rest + clock->numerator - 1) / clock->numerator;
}

/* Converts nanoseconds since the session's start to ticks. The result is at least 0. */
static inline uint64_t sj_ticks_of_ns(const sj_tick_clock *clock, int64_t ns)
{
    const uint64_t span = sj_ticks_in_ns(clock, ns < 0 ? -ns : ns);
    if (ns >= 0) {
        return clock->started_ticks + span;
    }
    return span < clock->started_ticks ? clock->started_ticks - span : 0;
}

#endif
