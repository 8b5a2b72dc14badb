/* What calls take when nothing disturbs them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H
#define SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H

#include "proto/base/cursor.h"

/* sj_typical_total_ns gives the time that the calls of a path would have taken together had those
 * that took more than twice the median (preempted, paged, throttled) taken what the others do:
 * their count times the mean of the rest. `histogram` is as stored, in ticks of `ns_per_tick`;
 * `total_ns` the exact sum. Returns `total_ns` when the histogram is empty or unreadable. */
double sj_typical_total_ns(sj_slice histogram, double total_ns, double ns_per_tick);

#endif
