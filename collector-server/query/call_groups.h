/* Sums of calls by up to SJ_GROUP_KEYS numbers, in bounded memory: what group_table.c adds up.
 *
 * Groups are found by a hash of their keys and stay where they are numbered. One thread. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H
#define SJ_COLLECTOR_SERVER_QUERY_CALL_GROUPS_H

#include "proto/callgraph/histogram.h"

#include <stddef.h>

enum {
    SJ_GROUP_KEYS = 9,
    SJ_GROUPS_MAX = 1 << 19,
    SJ_GROUPS_MAX_HISTOGRAM_BYTES = 256 << 20 /* of all groups together */
};

typedef struct sj_call_group {
    int64_t keys[SJ_GROUP_KEYS]; /* those that are not grouped by are 0 */
    uint64_t calls;              /* that ended */
    uint64_t open;               /* that did not */
    int64_t duration_ns, self_ns, min_ns, max_ns;
    sj_histogram durations; /* ns; only when asked for */
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

/* sj_call_groups_add adds a call that ended to a group, with `histogram` to its durations as well.
 * SJ_ENOMEM; SJ_ELIMIT: the histograms exceed SJ_GROUPS_MAX_HISTOGRAM_BYTES. */
SJ_MUST_CHECK sj_status sj_call_groups_add(sj_call_groups *groups, uint32_t number,
                                           int64_t duration_ns, int64_t self_ns, bool histogram);

/* sj_call_groups_quantile gives quantile q of a group's durations, between the least and the
 * greatest, by nearest rank; the group must have calls and a histogram. */
int64_t sj_call_groups_quantile(const sj_call_group *group, double q);

/* sj_call_groups_clear forgets all groups; safe on a zeroed one. */
void sj_call_groups_clear(sj_call_groups *groups);

#endif
