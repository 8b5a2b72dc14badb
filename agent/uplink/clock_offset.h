/* Computes the offset of the collector's clock from the device's, from the times in its replies.
 *
 * Each reply says when the question arrived and when the reply left, by the collector's real-time
 * clock. The device's own times of sending and receiving bound the offset: its error is at most
 * half of the round trip. The offset is the collector's REALTIME minus the device's BOOTTIME, which
 * cannot be set. Like NTP, but the bound is kept, not only the estimate. Not thread-safe. */
#ifndef SJ_AGENT_UPLINK_CLOCK_OFFSET_H
#define SJ_AGENT_UPLINK_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_clock_exchange {
    int64_t sent_ns;               /* By the device, BOOTTIME. */
    int64_t collector_received_ns; /* By the collector, REALTIME. */
    int64_t collector_sent_ns;
    int64_t received_ns;
} sj_clock_exchange;

typedef struct sj_clock_offset {
    int64_t boottime_ns; /* Time of the measurement, by the device's BOOTTIME. */
    int64_t offset_ns;   /* Collector's REALTIME minus the device's BOOTTIME. */
    int64_t uncertainty_ns;
} sj_clock_offset;

typedef struct sj_clock_offsets {
    sj_clock_offset best; /* The best of the current period. */
    bool has_best;
    int64_t reported_ns; /* BOOTTIME of the latest report. 0: never. */
    int64_t sent_uncertainty_ns;
} sj_clock_offsets;

/* Computes an offset. Returns false if the times contradict each other: a clock was set meanwhile,
 * or the collector sends no times. */
bool sj_clock_offset_of(const sj_clock_exchange *exchange, sj_clock_offset *offset);

/* Keeps the tightest offset of a period. Returns true if the collector should be sent the offset in
 * `*news`. That is so for the first one, and for the best one of every ten minutes. It is also so
 * for an offset less than half as uncertain as the last report. */
bool sj_clock_offsets_add(sj_clock_offsets *offsets, const sj_clock_exchange *exchange,
                          sj_clock_offset *news);

#endif
