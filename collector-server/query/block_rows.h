/* The calls entered in one decoded block, as columns: what single-call queries read.
 *
 * A row is a call that was entered in the block. A call whose exit lies in a later block is listed
 * in `open`; its end, self time, ending and flags come from the late leaves of that later block.
 * Memory is reused from block to block and grows to the largest block seen. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"

#define SJ_ROW_NO_PARENT UINT32_MAX /* the caller is no row of the block: see `parents` */

/* A call that may be none of the block's: UINT32_MAX (there is none), a row, SJ_CALL_OF_FRAME and
 * the depth of one open at the block's start, or SJ_CALL_BELOW_FRAME and such a depth: what that
 * one returns to, which is below those that jumped there. */
typedef uint32_t sj_row_call;
#define SJ_NO_CALL UINT32_MAX
#define SJ_CALL_OF_FRAME (UINT32_C(1) << 31)
#define SJ_CALL_BELOW_FRAME (UINT32_C(1) << 30)
#define SJ_CALL_DEPTH_MASK (SJ_CALL_BELOW_FRAME - 1)

typedef struct sj_block_rows {
    size_t count;
    uint32_t *symbols; /* index in the block's dictionary */
    uint32_t *depths;  /* 0: called by nothing recorded */
    uint32_t *parents; /* row of the caller; SJ_ROW_NO_PARENT: frame `depth - 1` of the calls open
                          at the start of the block, or none when depth is 0 */
    uint64_t *indexes; /* number of the call in its stream; gaps within the block skip numbers */
    uint8_t *endings;  /* sj_ending, or SJ_NOT_ENDED */
    uint8_t *flags;    /* sj_call_flag */
    /* what jumped to the call (a tail call), and what its stack frame returns to; not set unless
     * has_tail_calls: then no call was entered so, and frames return to the callers */
    sj_row_call *tail_callers;
    sj_row_call *frame_parents;
    bool has_tail_calls;
    /* with times only */
    uint64_t *starts; /* ticks */
    uint64_t *ends;
    uint64_t *selves;
    uint64_t *lefts; /* when the call jumped to another, which ended its frame; 0: it did not */
    uint32_t *open;  /* rows still open at the end of the block, outermost first */
    size_t open_count;
    size_t capacity;
} sj_block_rows;

static inline bool sj_row_ended(const sj_block_rows *rows, size_t row)
{
    return rows->endings[row] != SJ_NOT_ENDED;
}

void sj_block_rows_deinit(sj_block_rows *rows); /* safe on a zeroed one */

/* sj_block_rows_reserve makes room for rows that somebody else fills in. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_rows_reserve(sj_block_rows *rows, size_t count);

/* sj_block_rows_build fills `rows` from a block decoded with its structure, tail calls and, when
 * `times`, its times. SJ_ENOMEM; SJ_ECORRUPT when its events are not balanced against its
 * key-frame. */
SJ_MUST_CHECK sj_status sj_block_rows_build(sj_block_rows *rows, const sj_block *block, bool times);

#endif
