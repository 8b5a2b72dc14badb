/* Computes the offset of the collector's clock from the device's, from the times in its replies.
 *
 * Each reply says when the question arrived and when the reply left, by the collector's real-time
 * clock. The device's own times of sending and receiving limit the error of the offset to half of
 * the round trip. The offset is the collector's REALTIME minus the device's BOOTTIME, because
 * BOOTTIME cannot be set. The method is NTP's method, but the limit of the error (`uncertainty_ns`)
 * is kept as well. Not thread-safe. */
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
    sj_clock_offset best; /* The offset with the smallest uncertainty since the latest report. */
    bool has_best;
    int64_t reported_ns; /* BOOTTIME of the latest report. 0: never. */
    int64_t sent_uncertainty_ns;
} sj_clock_offsets;

/* Computes an offset. Returns false if the times contradict each other: a clock was set meanwhile,
 * or the collector sends no times. */
bool sj_clock_offset_of(const sj_clock_exchange *exchange, sj_clock_offset *offset);

/* Computes the offset of an exchange, and keeps the offset with the smallest uncertainty since the
 * latest report. Returns true if the caller should now report the kept offset, `*news`, to the
 * collector. It should report the first offset, and one every ten minutes. It should also report an
 * offset with less than half of the uncertainty of the latest report. */
bool sj_clock_offsets_add(sj_clock_offsets *offsets, const sj_clock_exchange *exchange,
                          sj_clock_offset *news);

#endif
