/* Values at the entries of open calls of one execution stack, for rules that are decided at the
 * exit. One thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_LATE_VALUES_H
#define SJ_AGENT_ASSEMBLER_LATE_VALUES_H

#include "proto/block/block.h"

#include <stdbool.h>

enum {
    SJ_LATE_VALUES = 1 << 16,    /* of one stack; those of deeper calls are not kept */
    SJ_LATE_TEXT_BYTES = 1 << 22 /* likewise */
};

typedef struct sj_late_call {
    uint64_t call_index;
    uint32_t depth; /* from 1 */
    size_t first;   /* of its values */
    size_t first_text;
} sj_late_call;

/* Zeroed is empty. */
typedef struct sj_late_values {
    sj_late_call *calls; /* outermost first */
    size_t call_count;
    size_t call_capacity;
    sj_block_value *values;
    size_t value_count;
    size_t value_capacity;
    char *texts; /* of the values, one behind the other */
    size_t text_bytes;
    size_t text_capacity;
} sj_late_values;

void sj_late_values_deinit(sj_late_values *late);

/* sj_late_values_put notes the values of a call that was entered at a depth; calls at this depth or
 * below have ended, seen or not. SJ_EFULL: there is no room for them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_late_values_put(sj_late_values *late, uint64_t call_index,
                                           uint32_t depth, const sj_block_value *values,
                                           size_t count);

/* sj_late_values_take borrows the values of a call that ends, until the next call of a function of
 * these; returns how many. */
size_t sj_late_values_take(sj_late_values *late, uint64_t call_index,
                           const sj_block_value **values);

#endif
