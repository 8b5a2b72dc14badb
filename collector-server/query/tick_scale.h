/* Converts clock ticks of a session to nanoseconds, and limits of times to ticks.
 *
 * ns = floor(ticks * numerator / denominator), computed as (ticks * factor) >> shift, where
 * `factor` is rounded up. The result is exact if ticks * denominator < 2^shift. The conversion is
 * always monotone, so a nested call never seems to end after its caller. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TICK_SCALE_H
#define SJ_COLLECTOR_SERVER_QUERY_TICK_SCALE_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 sj_uint128;

typedef struct sj_tick_scale {
    uint64_t numerator;
    uint64_t denominator;
    uint64_t factor; /* ceil(numerator * 2^shift / denominator) */
    unsigned shift;
} sj_tick_scale;

/* A tick lasts numerator / denominator ns. Returns false if either is not positive. */
static inline bool sj_tick_scale_init(sj_tick_scale *scale, int64_t numerator, int64_t denominator)
{
    if (numerator <= 0 || denominator <= 0) {
        return false;
    }
    scale->numerator = (uint64_t)numerator;
    scale->denominator = (uint64_t)denominator;
    for (scale->shift = 64; scale->shift > 0; --scale->shift) {
        /* The numerator is less than 2^63, so the shifted numerator fits into 127 bits. */
        const sj_uint128 scaled = (sj_uint128)scale->numerator << scale->shift;
        const sj_uint128 factor = (scaled + scale->denominator - 1) / scale->denominator;
        if (factor <= UINT64_MAX) {
            scale->factor = (uint64_t)factor;
            return true;
        }
    }
    return false;
}

/* Converts a duration. Returns at most INT64_MAX. */
static inline int64_t sj_ticks_to_ns(const sj_tick_scale *scale, uint64_t ticks)
{
    const sj_uint128 product = (sj_uint128)ticks * scale->factor;
    /* The shift is 64 for every clock above 1 GHz. The result is then the upper half of the
     * product. */
    const sj_uint128 ns = __builtin_expect(scale->shift == 64, 1) ? (uint64_t)(product >> 64)
                                                                  : product >> scale->shift;
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/* Returns the least number of ticks that last `ns` or longer, and UINT64_MAX if no number does. */
static inline uint64_t sj_ns_to_ticks_ceil(const sj_tick_scale *scale, int64_t ns)
{
    if (ns <= 0) {
        return 0;
    }
    const sj_uint128 guess = (sj_uint128)(uint64_t)ns * scale->denominator / scale->numerator;
    if (guess >= UINT64_MAX - 2) {
        return UINT64_MAX;
    }
    uint64_t ticks = (uint64_t)guess;
    while (ticks > 0 && sj_ticks_to_ns(scale, ticks - 1) >= ns) {
        --ticks;
    }
    while (sj_ticks_to_ns(scale, ticks) < ns) {
        ++ticks;
    }
    return ticks;
}

#endif
