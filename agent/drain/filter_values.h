/* Values in the call filter. Each value waits for the entry or exit that it belongs to. It is then
 * passed on, held back or dropped with that record. Not thread-safe. */
#ifndef SJ_AGENT_DRAIN_FILTER_VALUES_H
#define SJ_AGENT_DRAIN_FILTER_VALUES_H

#include "agent/abi/record.h"
#include "proto/base/status.h"

#include <stddef.h>

enum {
    /* limit of value records whose call has not been read yet */
    SJ_FILTER_VALUES_WAITING = 1 << 15,
    SJ_FILTER_VALUES_HELD = 1 << 18 /* limit of value records of held back calls */
};

/* A zeroed structure is empty. */
typedef struct sj_filter_values {
    sj_record *waiting; /* in the order of their records */
    size_t waiting_count;
    size_t waiting_capacity;
    sj_record *claimed; /* values of the current record */
    size_t claimed_count;
    size_t claimed_capacity;
    sj_record *held; /* values of calls that are held back, outermost first */
    size_t held_count;
    size_t held_capacity;
    uint64_t lost; /* values that were dropped at a limit */
} sj_filter_values;

void sj_filter_values_deinit(sj_filter_values *values);

/* Adds a value record to `waiting`. If too many wait, all waiting values count as lost: longjmp out
 * of a signal handler ended their calls. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_filter_values_add(sj_filter_values *values, const sj_record *record);

/* Moves the waiting values that belong to the entry or exit `of` into `claimed`. Returns SJ_ENOMEM
 * if out of memory. */
SJ_MUST_CHECK sj_status sj_filter_values_claim(sj_filter_values *values, const sj_record *of);

/* Appends `claimed` to `held`. If too many are held already, drops them and counts them as lost.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_filter_values_hold(sj_filter_values *values);

#endif
