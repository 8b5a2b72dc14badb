/* Growable arrays of the planner: one idea for the many lists that it collects. */
#ifndef SJ_AGENT_PLANNER_GROWABLE_H
#define SJ_AGENT_PLANNER_GROWABLE_H

#include "proto/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* sj_grow makes room for `count` + `more` elements of `element_bytes` in `*items`, whose room is
 * `*capacity`. SJ_ENOMEM, SJ_ELIMIT past 2^32 elements; the array stays as it was then. */
static inline SJ_MUST_CHECK sj_status sj_grow(void *items, size_t *capacity, size_t count,
                                              size_t more, size_t element_bytes)
{
    void **array = items;
    if (more <= *capacity - count) {
        return SJ_OK;
    }
    const size_t wanted = count + more > 2 * *capacity ? count + more + 64 : 2 * *capacity;
    if (wanted > UINT32_MAX || more > UINT32_MAX) {
        return SJ_ELIMIT;
    }
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL) {
        return SJ_ENOMEM;
    }
    *array = grown;
    *capacity = wanted;
    return SJ_OK;
}

#endif
