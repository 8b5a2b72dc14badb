/* Finds the hooked function that contains an address of a process. The index does not change after
 * sj_function_index_finish. */
#ifndef SJ_AGENT_REGISTRY_FUNCTION_INDEX_H
#define SJ_AGENT_REGISTRY_FUNCTION_INDEX_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_function_range {
    uint64_t low;
    uint64_t high;
    uint32_t function; /* id in the session */
} sj_function_range;

typedef struct sj_function_index {
    sj_function_range *ranges;
    size_t count;
    size_t capacity;
} sj_function_index;

/* Adds the hooked functions of the plan file at `plan_path`. Their module is mapped at `bias`, and
 * the ids of its functions start at `first_function`. Returns SJ_ENOMEM, SJ_EIO, or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_function_index_add(sj_function_index *index, const char *plan_path,
                                              uint64_t bias, uint32_t first_function);

/* Sorts the index. sj_function_index_find works only after this. */
void sj_function_index_finish(sj_function_index *index);

/* Returns the range that contains `address`, or NULL. */
const sj_function_range *sj_function_index_find(const sj_function_index *index, uint64_t address);

void sj_function_index_deinit(sj_function_index *index);

#endif
