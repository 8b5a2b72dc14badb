/* Block sums: totals of the calls of one block by function. A query that adds up many blocks needs
 * only these. A cache can store them (sums_cache.h), so that a block is decoded once.
 *
 * The sums are over the calls that began and ended in the block, and began in the scan's window.
 * They do not consider calls of earlier blocks that are open at the start of the block. Until such
 * a call ends, the block's calls of its function are nested in it. `ends` has the data to subtract
 * the times of these nested calls. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H

#include "collector-server/query/block_scan.h"

typedef struct sj_function_sum {
    uint64_t calls;
    uint64_t nested_ticks; /* durations of calls inside another call of the same function */
    uint64_t self_ticks;
    uint64_t duration_ticks;
    uint64_t min_ticks; /* UINT64_MAX: no call ended */
    uint64_t max_ticks;
    uint64_t open; /* calls that did not end in the block */
} sj_function_sum;

/* A counted call that is open at the end of a block. */
typedef struct sj_open_sum {
    uint64_t index; /* number in the stream */
    uint64_t start_ticks;
    uint32_t function; /* session-wide id */
    uint32_t depth;
} sj_open_sum;

/* All zero: empty. Owns its arrays. */
typedef struct sj_block_sums {
    sj_block_place place;
    uint32_t open_depth; /* number of calls that are open at the start of the block */
    /* number of these calls that are in DEEP_FRAMES blocks: the outermost calls, whose numbers in
     * the stream are not known here */
    uint32_t stack_frames;
    uint64_t *frames; /* numbers in the stream of the inline frames, which are open at the start */
    /* One element for each call that was open at the start and ended in the block, innermost first.
     * The element is a sum of durations in ticks. The sum has the calls of the same function that
     * began and ended in the block before this end, without nested calls. */
    uint64_t *ends;
    /* false: some of the ended calls are in DEEP_FRAMES blocks. Only `carried` of
     * sj_block_summer_add knows their functions, so a cache must not store the sums. */
    bool has_all_ends;
    uint32_t *functions;   /* session-wide ids */
    sj_function_sum *sums; /* parallel to `functions` */
    sj_open_sum *open;     /* calls of the block that are open at its end, outermost first */
    size_t frame_count, end_count, function_count, open_count;
    size_t frame_capacity, end_capacity, function_capacity, sum_capacity, open_capacity;
} sj_block_sums;

void sj_block_sums_deinit(sj_block_sums *sums);

/* Memory that is reused for each block. All zero: empty. */
typedef struct sj_block_summer {
    /* A slot is an index in sj_block_sums.functions. */
    uint32_t *slot_of;          /* by dictionary entry; several entries may be of one function */
    uint32_t *active;           /* by slot: number of open counted calls */
    uint32_t *slot_of_function; /* by session-wide id: slot + 1; 0: none */
    struct sj_summed_call *stack;
    size_t slot_capacity, active_capacity, function_capacity, stack_capacity;
} sj_block_summer;

void sj_block_summer_deinit(sj_block_summer *summer);

/* Fills `sums` from the block that a scan (SJ_SCAN_SUMS) has decoded. `carried` are the counted
 * calls of earlier blocks that are open at its start, outermost first. They tell the functions of
 * the open calls in DEEP_FRAMES blocks. Returns SQLITE_OK or SQLITE_NOMEM. Returns
 * SJ_SCAN_CONTRADICTION if the events contradict each other: then the warnings name the block, and
 * `sums` covers only the events before the contradiction. */
int sj_block_summer_add(sj_block_summer *summer, sj_block_scan *scan, const sj_open_sum *carried,
                        size_t carried_count, sj_block_sums *sums);

/* Adds one call that ended. `outermost`: no other call of the function contains it. */
static inline void sj_function_sum_add(sj_function_sum *sum, uint64_t duration, uint64_t self,
                                       bool outermost)
{
    ++sum->calls;
    sum->duration_ticks += duration;
    sum->self_ticks += self;
    /* These cases are rare, and a branch costs less than a write. */
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
