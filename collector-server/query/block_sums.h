/* What the calls of one block add up to, by function: all that a walk over the sums of many blocks
 * has to know of one whose calls all count, so that it is decoded once and not for each question.
 *
 * Sums count the calls that began in the block (of those, the ones in the scan's window) and ended
 * in it, as if none that was open at its start counted. When such a one does, calls of its function
 * are nested in it until it ends: `ends` says which. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_SUMS_H

#include "collector-server/query/block_scan.h"

typedef struct sj_function_sum {
    uint64_t calls;
    uint64_t nested_ticks; /* of the calls that an outer call of the same function contains */
    uint64_t self_ticks;
    uint64_t duration_ticks;
    uint64_t min_ticks; /* UINT64_MAX: no call ended */
    uint64_t max_ticks;
    uint64_t open; /* calls that did not end */
} sj_function_sum;

/* A call that counts and is open across a block boundary. */
typedef struct sj_open_sum {
    uint64_t index; /* within the stream */
    uint64_t start_ticks;
    uint32_t function; /* session-wide id */
    uint32_t depth;
} sj_open_sum;

/* Zeroed is empty. Owns its arrays. */
typedef struct sj_block_sums {
    sj_block_place place;
    uint32_t open_depth;   /* calls open at its start */
    uint32_t stack_frames; /* so many of them, the outermost, are in stack blocks: no indexes */
    bool has_all_ends;     /* else it is unknown which functions some of the `ends` are of */
    uint64_t *frames;      /* indexes of the other open calls */
    uint64_t *ends; /* by depth, innermost first, of those that ended in the block: how long its
                     * function's calls, not nested, took in the block before */
    uint32_t *functions;   /* session-wide ids */
    sj_function_sum *sums; /* by the place in `functions` */
    sj_open_sum *open;     /* calls of the block, outermost first */
    size_t frame_count, end_count, function_count, open_count;
    size_t frame_capacity, end_capacity, function_capacity, sum_capacity, open_capacity;
} sj_block_sums;

void sj_block_sums_deinit(sj_block_sums *sums);

/* What is reused from block to block. Zeroed is empty. */
typedef struct sj_block_summer {
    uint32_t *slot_of; /* by dictionary entry: these differ in how calls were entered, too */
    uint32_t *active;  /* by slot: open calls that count */
    uint32_t *slot_of_function; /* by session-wide id, plus 1; 0: no entry */
    struct sj_summed_call *stack;
    size_t slot_capacity, active_capacity, function_capacity, stack_capacity;
} sj_block_summer;

void sj_block_summer_deinit(sj_block_summer *summer);

/* sj_block_summer_add fills `sums` from the block that a scan (SJ_SCAN_SUMS) has decoded. `carried`
 * are calls that count and are open at its start, outermost first: they name the functions of those
 * that stack blocks hold. SQLITE_NOMEM; SQLITE_CORRUPT: the events contradict each other; the block
 * was named in the warnings, and `sums` has what came before. */
int sj_block_summer_add(sj_block_summer *summer, sj_block_scan *scan, const sj_open_sum *carried,
                        size_t carried_count, sj_block_sums *sums);

/* sj_function_sum_add counts one call that ended. */
static inline void sj_function_sum_add(sj_function_sum *sum, uint64_t duration, uint64_t self,
                                       bool outermost)
{
    ++sum->calls;
    sum->duration_ticks += duration;
    sum->self_ticks += self;
    /* rare, all three: branches are cheaper than writing back what did not change */
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
