/* Interval builder: the call tree of sources that give only intervals (imports, sampled spans).
 *
 * The definition is the same as for recorded streams: A calls B when A's interval contains B's and
 * no call between them does. Containment is closed (equal ends count as inside), which together
 * with two tie rules makes it total:
 *   - of two calls with the same interval, the earlier entered contains the later (as far as the
 * order listed tells);
 *   - a call lies within every call whose interval contains it, also when it only touches its end.
 * Coarse clocks make such ties frequent and the second rule then guesses; a source that knows the
 * depth of its calls says so and gets the exact tree of a recorded stream, at any clock.
 *
 * Intervals that overlap without containment cannot be calls of one stack; a call is then the child
 * of the innermost open one that contains it, those that it outlives count as ended where it began,
 * and it is counted as overlapping.
 * O(n log n) at most; 24 bytes of scratch a call. */
#ifndef SJ_COLLECTOR_CALLGRAPH_INTERVAL_BUILDER_H
#define SJ_COLLECTOR_CALLGRAPH_INTERVAL_BUILDER_H

#include "proto/status.h"

#include <stddef.h>
#include <stdint.h>

#define SJ_INTERVAL_NO_PARENT UINT32_MAX

typedef struct sj_interval {
    uint64_t start_ticks;
    uint64_t end_ticks; /* not before the start */
    uint32_t function;
    uint32_t depth; /* 0: outermost; read when depths are known */
} sj_interval;

/* How ties between equal starts are told apart. */
typedef enum sj_interval_order {
    SJ_INTERVALS_UNORDERED = 0,     /* the longer is the outer; of equal ones that listed first */
    SJ_INTERVALS_BY_EXIT = 1,       /* the longer is the outer; of equal ones that listed last */
    SJ_INTERVALS_BY_ENTRY_DEPTH = 2 /* listed in order of entry where starts tie; depths: exact */
} sj_interval_order;

typedef struct sj_interval_call {
    uint32_t source;      /* number of its interval as given */
    uint32_t parent;      /* number of its caller in the result; SJ_INTERVAL_NO_PARENT */
    uint32_t depth;       /* 0: called by nothing */
    uint64_t child_ticks; /* total duration of its direct callees */
} sj_interval_call;

/* sj_intervals_build writes `count` calls in preorder and sets how many intervals overlapped an
 * open call without being contained in it. SJ_EINVAL: an end before its start, a depth with no
 * caller one above; SJ_ELIMIT: 2^32 - 1 or more intervals; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_intervals_build(const sj_interval *intervals, size_t count,
                                           sj_interval_order order, sj_interval_call *calls,
                                           size_t *overlapping);

#endif
