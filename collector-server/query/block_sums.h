/* Block sums: totals of the calls of one block by function. A question that adds up many blocks
 * needs only these, so each block is decoded once instead of once per question.
 *
 * Sums count the calls that began and ended in the block, inside the scan's window. They assume
 * that no counted call was open at its start. If one was, calls of its function are nested in it
 * until it ends: `ends` says which. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H

#include "collector-server/query/block_scan.h"

typedef struct sj_function_sum {
    uint64_t calls;
    uint64_t nested_ticks; /* of calls that an outer call of the same function contains */
    uint64_t self_ticks;
    uint64_t duration_ticks;
    uint64_t min_ticks; /* UINT64_MAX: no call ended */
    uint64_t max_ticks;
    uint64_t open; /* calls that did not end */
} sj_function_sum;

/* A counted call that is open across a block boundary. */
typedef struct sj_open_sum {
    uint64_t index; /* number in the stream */
    uint64_t start_ticks;
    uint32_t function; /* session-wide id */
    uint32_t depth;
} sj_open_sum;

/* All zero: empty. Owns its arrays. */
typedef struct sj_block_sums {
    sj_block_place place;
    uint32_t open_depth; /* number of calls open at its start */
    /* number of those, from the outermost, that are in stack blocks: without indexes */
    uint32_t stack_frames;
    bool has_all_ends; /* false: the functions of some of the `ends` are unknown */
    uint64_t *frames;  /* call indexes of the other open calls */
    /* By depth, innermost first, for open calls that ended in the block: time of their function's
     * calls, not nested, in the block before that. */
    uint64_t *ends;
    uint32_t *functions;   /* session-wide ids */
    sj_function_sum *sums; /* parallel to `functions` */
    sj_open_sum *open;     /* calls of the block, outermost first */
    size_t frame_count, end_count, function_count, open_count;
    size_t frame_capacity, end_capacity, function_capacity, sum_capacity, open_capacity;
} sj_block_sums;

void sj_block_sums_deinit(sj_block_sums *sums);

/* Memory that is reused for each block. All zero: empty. */
typedef struct sj_block_summer {
    uint32_t *slot_of; /* by dictionary entry; entries also differ in how calls were entered */
    uint32_t *active;  /* by slot: number of open counted calls */
    uint32_t *slot_of_function; /* by session-wide id, plus 1; 0: no entry */
    struct sj_summed_call *stack;
    size_t slot_capacity, active_capacity, function_capacity, stack_capacity;
} sj_block_summer;

void sj_block_summer_deinit(sj_block_summer *summer);

/* Fills `sums` from the block that a scan (SJ_SCAN_SUMS) has decoded. `carried` are the counted
 * calls that are open at its start, outermost first; they name the functions of calls in stack
 * blocks. Returns SQLITE_NOMEM, or SJ_SCAN_CONTRADICTION if the events contradict each other. The
 * warnings then name the block, and `sums` covers the events before. */
int sj_block_summer_add(sj_block_summer *summer, sj_block_scan *scan, const sj_open_sum *carried,
                        size_t carried_count, sj_block_sums *sums);

/* Adds one call that ended. */
static inline void sj_function_sum_add(sj_function_sum *sum, uint64_t duration, uint64_t self,
                                       bool outermost)
{
    ++sum->calls;
    sum->duration_ticks += duration;
    sum->self_ticks += self;
    /* All three are rare: a branch costs less than a write without a change. */
    if (__builtin_expect(!outermost, 0)) {
        sum->nested_ticks += duration;
    }
    if (__builtin_expect(duration < sum->min_ticks, 0)) {
        sum->min_ticks = duration;
    }
    if (__builtin_expect(duration > sum->max_ticks, 0)) {
        sum->max_ticks = duration;
    }
}

#endif
