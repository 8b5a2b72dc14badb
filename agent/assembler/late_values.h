/* Values recorded at the entries of open calls of one execution stack, kept for rules that the exit
 * decides. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_LATE_VALUES_H
#define SJ_AGENT_ASSEMBLER_LATE_VALUES_H

#include "proto/block/block.h"

#include <stdbool.h>

enum {
    SJ_LATE_VALUES = 1 << 16,    /* values per stack; values of deeper calls are not kept */
    SJ_LATE_TEXT_BYTES = 1 << 22 /* bytes of texts per stack */
};

typedef struct sj_late_call {
    uint64_t call_index;
    uint32_t depth; /* 1: the outermost call */
    size_t first;   /* index of its first value */
    size_t first_text;
} sj_late_call;

/* All zero: empty. */
typedef struct sj_late_values {
    sj_late_call *calls; /* outermost first */
    size_t call_count;
    size_t call_capacity;
    sj_block_value *values;
    size_t value_count;
    size_t value_capacity;
    char *texts; /* the texts of the values, one after the other */
    size_t text_bytes;
    size_t text_capacity;
} sj_late_values;

void sj_late_values_deinit(sj_late_values *late);

/* Stores the values of a call that was entered at `depth`. Calls at this depth or deeper have ended
 * and are removed. Returns SJ_EFULL if the capacity is used up, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_late_values_push(sj_late_values *late, uint64_t call_index,
                                            uint32_t depth, const sj_block_value *values,
                                            size_t count);

/* Removes the values of a call that ends, and returns their number. `*values` is borrowed until the
 * next sj_late_values_push. */
size_t sj_late_values_pop(sj_late_values *late, uint64_t call_index, const sj_block_value **values);

#endif
