/* Values in front of the filter of calls: each waits for the entry or the exit that it belongs to,
 * and is passed on, held back or left out with it. One thread at a time. */
#ifndef SJ_AGENT_DRAIN_FILTER_VALUES_H
#define SJ_AGENT_DRAIN_FILTER_VALUES_H

#include "agent/abi/record.h"
#include "proto/base/status.h"

#include <stddef.h>

enum {
    SJ_FILTER_VALUES_WAITING = 1 << 15, /* records of values whose call has not come */
    SJ_FILTER_VALUES_HELD = 1 << 18     /* of calls that are held back */
};

/* Zeroed is empty. */
typedef struct sj_filter_values {
    sj_record *waiting; /* in their order */
    size_t waiting_count;
    size_t waiting_capacity;
    sj_record *taken; /* for one call */
    size_t taken_count;
    size_t taken_capacity;
    sj_record *held; /* of calls that are held back, outermost first */
    size_t held_count;
    size_t held_capacity;
    uint64_t lost; /* values that found no room */
} sj_filter_values;

void sj_filter_values_deinit(sj_filter_values *values);

/* sj_filter_values_add lets a record of a value wait. Where too many wait, whose calls were left by
 * a longjmp out of a handler, they are lost. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_filter_values_add(sj_filter_values *values, const sj_record *record);

/* sj_filter_values_take makes those that wait for an entry or an exit `taken`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_filter_values_take(sj_filter_values *values, const sj_record *of);

/* sj_filter_values_hold adds the taken ones to those of calls that are held back. Where these are
 * too many, they are lost. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_filter_values_hold(sj_filter_values *values);

#endif
