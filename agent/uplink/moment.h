/* Moments of the monotonic clock, and the time since boot. Any thread; none blocks. */
#ifndef SJ_AGENT_UPLINK_MOMENT_H
#define SJ_AGENT_UPLINK_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* sj_moment_after_ms returns the moment that is `ms` milliseconds from now. */
struct timespec sj_moment_after_ms(int64_t ms);

/* sj_moment_is_before returns true if `left` is earlier than `right`. */
bool sj_moment_is_before(const struct timespec *left, const struct timespec *right);

/* sj_moment_has_passed returns true if `moment` is now or was before. */
bool sj_moment_has_passed(const struct timespec *moment);

/* sj_boottime_ns returns the nanoseconds since boot, suspended time included. */
int64_t sj_boottime_ns(void);

#endif
