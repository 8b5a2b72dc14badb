/* Call groups: sums of calls by up to SJ_GROUP_KEYS numbers, in bounded memory, for group_table.c.
 *
 * A hash of the keys finds a group. A group keeps its number. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H
#define SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H

#include "proto/callgraph/histogram.h"

#include <stdbool.h>
#include <stddef.h>

/* Keys that calls are grouped by: columns of call_groups, in this order. */
typedef enum sj_group_key {
    SJ_KEY_SESSION,
    SJ_KEY_PROCESS,
    SJ_KEY_THREAD,
    SJ_KEY_STREAM,
    SJ_KEY_MODULE,
    SJ_KEY_FUNCTION,
    SJ_KEY_CALLER,
    SJ_KEY_MARK,
    SJ_KEY_DEPTH,
    SJ_KEY_BUCKET,
    SJ_GROUP_KEYS
} sj_group_key;

#define SJ_NO_KEY INT64_MIN /* NULL */

enum {
    SJ_GROUPS_MAX = 1 << 19,
    SJ_GROUPS_MAX_HISTOGRAM_BYTES = 256 << 20 /* of all groups together */
};

typedef struct sj_call_group {
    uint64_t calls; /* calls that ended */
    uint64_t open;  /* calls that did not */
    int64_t duration_ns, self_ns, min_ns, max_ns;
    sj_histogram durations;      /* nanoseconds; only if requested */
    int64_t keys[SJ_GROUP_KEYS]; /* unused keys are 0 */
} sj_call_group;

/* All zero: empty. */
typedef struct sj_call_groups {
    sj_call_group *groups;
    size_t count, capacity;
    uint32_t *slots; /* number of a group, plus 1; 0: free */
    size_t slot_count;
    size_t histogram_bytes;
} sj_call_groups;

/* Returns the number of the group with these keys; adds the group if it is new. Returns SJ_ENOMEM,
 * or SJ_ELIMIT if there are SJ_GROUPS_MAX groups. */
SJ_MUST_CHECK sj_status sj_call_groups_find(sj_call_groups *groups,
                                            const int64_t keys[SJ_GROUP_KEYS], uint32_t *number);

/* Adds a duration to a group's histogram. Returns SJ_ENOMEM, or SJ_ELIMIT if the histograms exceed
 * SJ_GROUPS_MAX_HISTOGRAM_BYTES. */
SJ_MUST_CHECK sj_status sj_call_groups_add_duration(sj_call_groups *groups, sj_call_group *group,
                                                    int64_t duration_ns);

/* Adds an ended call to a group. `histogram`: also adds its duration to the histogram. Errors as
 * sj_call_groups_add_duration. */
SJ_MUST_CHECK static inline sj_status sj_call_groups_add(sj_call_groups *groups, uint32_t number,
                                                         int64_t duration_ns, int64_t self_ns,
                                                         bool histogram)
{
    sj_call_group *group = &groups->groups[number];
    ++group->calls;
    /* unsigned, so that times of a wrong clock wrap */
    group->duration_ns = (int64_t)((uint64_t)group->duration_ns + (uint64_t)duration_ns);
    group->self_ns = (int64_t)((uint64_t)group->self_ns + (uint64_t)self_ns);
    /* Both are rare: a branch costs less than a write without a change. */
    if (__builtin_expect(duration_ns < group->min_ns, 0)) {
        group->min_ns = duration_ns;
    }
    if (__builtin_expect(duration_ns > group->max_ns, 0)) {
        group->max_ns = duration_ns;
    }
    return histogram ? sj_call_groups_add_duration(groups, group, duration_ns) : SJ_OK;
}

/* Returns quantile q of a group's durations, from the least to the greatest, by nearest rank. The
 * group must have calls and a histogram. */
int64_t sj_call_groups_quantile(const sj_call_group *group, double q);

/* Removes all groups; safe on a zeroed one. */
void sj_call_groups_clear(sj_call_groups *groups);

#endif
