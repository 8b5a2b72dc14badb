/* Sums of calls by up to SJ_GROUP_KEYS numbers, in bounded memory: what group_table.c adds up.
 *
 * Groups are found by a hash of their keys and stay where they are numbered. One thread. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H
#define SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H

#include "proto/callgraph/histogram.h"

#include <stdbool.h>
#include <stddef.h>

/* What calls are grouped by; columns of call_groups, in this order. */
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
    uint64_t calls; /* that ended */
    uint64_t open;  /* that did not */
    int64_t duration_ns, self_ns, min_ns, max_ns;
    sj_histogram durations;      /* ns; only when asked for */
    int64_t keys[SJ_GROUP_KEYS]; /* those that are not grouped by are 0 */
} sj_call_group;

/* Zeroed is empty. */
typedef struct sj_call_groups {
    sj_call_group *groups;
    size_t count, capacity;
    uint32_t *slots; /* number of a group, plus 1; 0: free */
    size_t slot_count;
    size_t histogram_bytes;
} sj_call_groups;

/* sj_call_groups_find gives the number of the group with these keys, new when there is none yet.
 * SJ_ENOMEM; SJ_ELIMIT: there are SJ_GROUPS_MAX. */
SJ_MUST_CHECK sj_status sj_call_groups_find(sj_call_groups *groups,
                                            const int64_t keys[SJ_GROUP_KEYS], uint32_t *number);

/* sj_call_groups_add_duration adds one to the durations of a group. SJ_ENOMEM; SJ_ELIMIT: the
 * histograms exceed SJ_GROUPS_MAX_HISTOGRAM_BYTES. */
SJ_MUST_CHECK sj_status sj_call_groups_add_duration(sj_call_groups *groups, sj_call_group *group,
                                                    int64_t duration_ns);

/* sj_call_groups_add adds a call that ended to a group, with `histogram` to its durations as well.
 * Errors as sj_call_groups_add_duration. */
SJ_MUST_CHECK static inline sj_status sj_call_groups_add(sj_call_groups *groups, uint32_t number,
                                                         int64_t duration_ns, int64_t self_ns,
                                                         bool histogram)
{
    sj_call_group *group = &groups->groups[number];
    ++group->calls;
    /* unsigned: clocks that make no sense wrap */
    group->duration_ns = (int64_t)((uint64_t)group->duration_ns + (uint64_t)duration_ns);
    group->self_ns = (int64_t)((uint64_t)group->self_ns + (uint64_t)self_ns);
    /* rare, both: branches are cheaper than writing back what did not change */
    if (__builtin_expect(duration_ns < group->min_ns, 0)) {
        group->min_ns = duration_ns;
    }
    if (__builtin_expect(duration_ns > group->max_ns, 0)) {
        group->max_ns = duration_ns;
    }
    return histogram ? sj_call_groups_add_duration(groups, group, duration_ns) : SJ_OK;
}

/* sj_call_groups_quantile gives quantile q of a group's durations, between the least and the
 * greatest, by nearest rank; the group must have calls and a histogram. */
int64_t sj_call_groups_quantile(const sj_call_group *group, double q);

/* sj_call_groups_clear forgets all groups; safe on a zeroed one. */
void sj_call_groups_clear(sj_call_groups *groups);

#endif
