/* How far the collector's clock is from the device's, from the times in its answers.
 *
 * Each answer of the collector says when the question came in and when the answer went out, by the
 * collector's real-time clock. With the device's own times of sending and receiving that bounds the
 * offset (collector's real time minus device's BOOTTIME, which nobody sets) to half of what the way
 * there and back took; like NTP, but the bound is kept, not only the estimate. Not thread-safe. */
#ifndef SJ_AGENT_UPLINK_CLOCK_OFFSET_H
#define SJ_AGENT_UPLINK_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_clock_exchange {
    int64_t sent_ns;               /* device, BOOTTIME */
    int64_t collector_received_ns; /* collector, REALTIME */
    int64_t collector_sent_ns;
    int64_t received_ns;
} sj_clock_exchange;

typedef struct sj_clock_offset {
    int64_t boottime_ns; /* of the device, when it held */
    int64_t offset_ns;   /* collector's REALTIME = device's BOOTTIME + offset */
    int64_t uncertainty_ns;
} sj_clock_offset;

typedef struct sj_clock_offsets {
    sj_clock_offset best; /* of the current period */
    bool has_best;
    int64_t reported_ns; /* BOOTTIME at which it was reported last; 0: never */
    int64_t sent_uncertainty_ns;
} sj_clock_offsets;

/* sj_clock_offset_of computes an offset; false: the times contradict each other (a clock was set
 * meanwhile, or the collector sends none). */
bool sj_clock_offset_of(const sj_clock_exchange *exchange, sj_clock_offset *offset);

/* sj_clock_offsets_take keeps the tightest of a period's offsets and reports whether the collector
 * should hear of it, in `*news`: the first, then the best of every ten minutes, and at once one
 * that is less than half as uncertain as the last. */
bool sj_clock_offsets_take(sj_clock_offsets *offsets, const sj_clock_exchange *exchange,
                           sj_clock_offset *news);

#endif
