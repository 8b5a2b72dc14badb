/* Block rows: the calls entered in one decoded block, as columns, for queries about single calls.
 *
 * A row is a call that was entered in the block. A call whose exit is in a later block is listed in
 * `open`. The late exits of that later block give its end, self time, ending and flags. The memory
 * is reused for each block, and grows to the largest block seen. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"

#define SJ_ROW_NO_PARENT UINT32_MAX /* the caller is not a row of the block: see `parents` */

/* A call that may lie outside the block. UINT32_MAX: none. A row. SJ_CALL_OF_FRAME plus the depth
 * of a call that was open at the block's start. SJ_CALL_BELOW_FRAME plus such a depth: the call
 * that this one returns to, below those that jumped there. */
typedef uint32_t sj_row_call;
#define SJ_NO_CALL UINT32_MAX
#define SJ_CALL_OF_FRAME (UINT32_C(1) << 31)
#define SJ_CALL_BELOW_FRAME (UINT32_C(1) << 30)
#define SJ_CALL_DEPTH_MASK (SJ_CALL_BELOW_FRAME - 1)

typedef struct sj_block_rows {
    size_t count;
    uint32_t *symbols; /* index in the block's dictionary */
    uint32_t *depths;  /* 0: no recorded caller */
    /* Row of the caller. SJ_ROW_NO_PARENT: frame `depth - 1` of the calls open at the start of the
     * block, or no caller if the depth is 0. */
    uint32_t *parents;
    uint64_t *indexes; /* number of the call in its stream; gaps inside the block skip numbers */
    uint8_t *endings;  /* sj_ending, or SJ_NOT_ENDED */
    uint8_t *flags;    /* sj_call_flag */
    /* The call that jumped to the call (a tail call), and the call that its stack frame returns to.
     * Not set unless has_tail_calls. Without tail calls, frames return to the callers. */
    sj_row_call *tail_callers;
    sj_row_call *frame_parents;
    bool has_tail_calls;
    /* only with times */
    uint64_t *starts; /* ticks */
    uint64_t *ends;
    uint64_t *selves;
    uint64_t *lefts; /* when the call jumped to another one, which ended its frame; 0: it did not */
    uint32_t *open;  /* rows that are open at the end of the block, outermost first */
    size_t open_count;
    size_t capacity;
} sj_block_rows;

static inline bool sj_row_ended(const sj_block_rows *rows, size_t row)
{
    return rows->endings[row] != SJ_NOT_ENDED;
}

void sj_block_rows_deinit(sj_block_rows *rows); /* safe on a zeroed one */

/* Allocates rows that the caller fills in. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_rows_reserve(sj_block_rows *rows, size_t count);

/* Fills `rows` from a block that was decoded with structure, tail calls and, if `times`, times.
 * Returns SJ_ENOMEM, or SJ_ECORRUPT if the events do not match the key-frame. */
SJ_MUST_CHECK sj_status sj_block_rows_build(sj_block_rows *rows, const sj_block *block, bool times);

#endif
