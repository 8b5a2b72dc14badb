/* Moments of the monotonic clock, and the time since boot. Thread-safe and non-blocking. */
#ifndef SJ_AGENT_UPLINK_MOMENT_H
#define SJ_AGENT_UPLINK_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the moment `ms` milliseconds from now. */
struct timespec sj_moment_after_ms(int64_t ms);

/* True if `left` is earlier than `right`. */
bool sj_moment_is_before(const struct timespec *left, const struct timespec *right);

/* True if `moment` is not in the future. */
bool sj_moment_has_passed(const struct timespec *moment);

/* Returns the nanoseconds since boot, including suspended time. */
int64_t sj_boottime_ns(void);

#endif
