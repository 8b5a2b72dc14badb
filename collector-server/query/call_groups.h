/* Call groups: sums of calls, grouped by up to SJ_GROUP_KEYS numbers, in bounded memory. Used by
 * group_table.c. A group keeps its number until sj_call_groups_clear. Not thread-safe. */
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

#define SJ_NO_KEY INT64_MIN /* the key is NULL */

enum {
    SJ_GROUPS_MAX = 1 << 19,
    SJ_GROUPS_MAX_HISTOGRAM_BYTES = 256 << 20 /* limit for all groups together */
};

typedef struct sj_call_group {
    uint64_t calls; /* calls that ended */
    uint64_t open;  /* calls that did not end */
    int64_t duration_ns, self_ns, min_ns, max_ns;
    sj_histogram durations;      /* nanoseconds; empty unless histograms are requested */
    int64_t keys[SJ_GROUP_KEYS]; /* unused keys are 0 */
} sj_call_group;

/* All zero: empty. */
typedef struct sj_call_groups {
    sj_call_group *groups;
    size_t count, capacity;
    uint32_t *slots; /* hash table: number of a group + 1; 0: free */
    size_t slot_count;
    size_t histogram_bytes; /* sum over all groups */
} sj_call_groups;

/* Writes the number of the group with these keys. Adds the group if it is new. Fails with
 * SJ_ENOMEM, and with SJ_ELIMIT if there are SJ_GROUPS_MAX groups. */
SJ_MUST_CHECK sj_status sj_call_groups_find(sj_call_groups *groups,
                                            const int64_t keys[SJ_GROUP_KEYS], uint32_t *number);

/* Adds a duration to a group's histogram. Fails with SJ_ENOMEM, and with SJ_ELIMIT if all
 * histograms together exceed SJ_GROUPS_MAX_HISTOGRAM_BYTES. */
SJ_MUST_CHECK sj_status sj_call_groups_add_duration(sj_call_groups *groups, sj_call_group *group,
                                                    int64_t duration_ns);

/* Adds an ended call to a group. If `histogram`, adds its duration to the histogram, too. The
 * errors are as for sj_call_groups_add_duration. */
SJ_MUST_CHECK static inline sj_status sj_call_groups_add(sj_call_groups *groups, uint32_t number,
                                                         int64_t duration_ns, int64_t self_ns,
                                                         bool histogram)
{
    sj_call_group *group = &groups->groups[number];
    ++group->calls;
    /* Unsigned, because the sum of wrong clock values may overflow. */
    group->duration_ns = (int64_t)((uint64_t)group->duration_ns + (uint64_t)duration_ns);
    group->self_ns = (int64_t)((uint64_t)group->self_ns + (uint64_t)self_ns);
    /* These cases are rare, and a branch costs less than a write. */
    if (__builtin_expect(duration_ns < group->min_ns, 0)) {
        group->min_ns = duration_ns;
    }
    if (__builtin_expect(duration_ns > group->max_ns, 0)) {
        group->max_ns = duration_ns;
    }
    return histogram ? sj_call_groups_add_duration(groups, group, duration_ns) : SJ_OK;
}

/* Returns the quantile q (0 to 1) of a group's durations by nearest rank. The result is between the
 * group's least and greatest duration. The group must have calls and a histogram. */
int64_t sj_call_groups_quantile(const sj_call_group *group, double q);

/* Removes all groups. Safe on zeroed groups. */
void sj_call_groups_clear(sj_call_groups *groups);

#endif
