/* Estimates the time that calls take without disturbances. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H
#define SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H

#include "proto/base/cursor.h"

/* Returns an estimate in ns of the time that the calls of a path would have taken without
 * disturbances (preemption, paging, throttling). A call that took more than twice the median is
 * disturbed. The estimate replaces the duration of each disturbed call by the mean of the other
 * calls. `histogram` has the durations of the calls as stored, in ticks of `ns_per_tick`.
 * `total_ns` is the exact sum of the durations. Returns `total_ns` if the histogram is empty or
 * invalid, or if no call was disturbed. */
double sj_typical_total_ns(sj_slice histogram, double total_ns, double ns_per_tick);

#endif
