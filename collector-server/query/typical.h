/* Estimates what calls take without disturbances. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H
#define SJ_COLLECTOR_SERVER_QUERY_TYPICAL_H

#include "proto/base/cursor.h"

/* Returns the time that the calls of a path would have taken without disturbances. It replaces each
 * call that took more than twice the median (preempted, paged, throttled) by the mean of the
 * others. `histogram` is a stored one, in ticks of `ns_per_tick`; `total_ns` is the exact sum.
 * Returns `total_ns` if the histogram is empty or invalid. */
double sj_typical_total_ns(sj_slice histogram, double total_ns, double ns_per_tick);

#endif
