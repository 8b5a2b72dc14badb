/* The 48-bit times of records. */
#ifndef SJ_AGENT_DRAIN_RECORD_TICKS_H
#define SJ_AGENT_DRAIN_RECORD_TICKS_H

#include <stdint.h>

#define SJ_TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* Extends the 48-bit time of a record that was written before `now_ticks` to 64 bits. */
static inline uint64_t sj_record_whole_ticks(uint64_t now_ticks, uint64_t ticks48)
{
    return now_ticks - ((now_ticks - ticks48) & SJ_TICKS48_MASK);
}

/* Returns the ticks from one 48-bit time to another; 0 if the clock went back. */
static inline uint64_t sj_record_age(uint64_t now48, uint64_t then48)
{
    const uint64_t ticks = (now48 - then48) & SJ_TICKS48_MASK;
    return ticks <= SJ_TICKS48_MASK / 2 ? ticks : 0;
}

#endif
