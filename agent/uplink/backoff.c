#include "agent/uplink/backoff.h"

/* Returns the next number of the generator splitmix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint32_t sj_backoff_next_ms(sj_backoff *backoff)
{
    const uint32_t doubled = backoff->ceiling_ms * 2;
    backoff->ceiling_ms = doubled < SJ_BACKOFF_MIN_MS   ? SJ_BACKOFF_MIN_MS
                          : doubled > SJ_BACKOFF_MAX_MS ? SJ_BACKOFF_MAX_MS
                                                        : doubled;
    const uint32_t half_ms = backoff->ceiling_ms / 2;
    return half_ms + (uint32_t)(next_random(&backoff->random) % (half_ms + 1));
}

void sj_backoff_reset(sj_backoff *backoff)
{
    backoff->ceiling_ms = 0;
}
