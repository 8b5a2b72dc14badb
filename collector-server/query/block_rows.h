/* Block rows: the calls that were entered in one decoded block, as columns, for queries about
 * single calls.
 *
 * Calls that did not end in the block are listed in `open`. Their end, self time, ending and flags
 * are in the late exits of a later block (late_exits.h). The memory is reused for each block. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"

#define SJ_ROW_NO_PARENT UINT32_MAX /* the caller is not a row of the block; see `parents` */

/* A reference to a call. Possible values:
 * - SJ_NO_CALL.
 * - A row of the block.
 * - SJ_CALL_OF_FRAME + depth: the call that was open at this depth at the start of the block.
 * - SJ_CALL_BELOW_FRAME + depth: of the calls that were open at the start of the block with a
 *   smaller depth, the innermost whose stack frame had not ended by a tail call. */
typedef uint32_t sj_row_call;
#define SJ_NO_CALL UINT32_MAX
#define SJ_CALL_OF_FRAME (UINT32_C(1) << 31)
#define SJ_CALL_BELOW_FRAME (UINT32_C(1) << 30)
#define SJ_CALL_DEPTH_MASK (SJ_CALL_BELOW_FRAME - 1)

typedef struct sj_block_rows {
    size_t count;
    uint32_t *symbols; /* index in the block's dictionary */
    uint32_t *depths;  /* 0: no recorded caller */
    /* Row of the caller. SJ_ROW_NO_PARENT: the caller is the call that was open at `depth` - 1 at
     * the start of the block. At depth 0 there is no caller. */
    uint32_t *parents;
    uint64_t *indexes; /* number of the call in its stream; lost calls have numbers, too */
    uint8_t *endings;  /* sj_ending, or SJ_NOT_ENDED */
    uint8_t *flags;    /* sj_call_flag */
    /* The call that made the tail call to this call, and the call that this call's stack frame
     * returns to. Only set if has_tail_calls. Without tail calls, stack frames return to the
     * callers. */
    sj_row_call *tail_callers;
    sj_row_call *frame_parents;
    bool has_tail_calls;
    /* Only with times, in ticks: */
    uint64_t *starts;
    uint64_t *ends;
    uint64_t *selves; /* self times */
    uint64_t *lefts;  /* time of the call's own tail call, which ended its stack frame; 0: none */
    uint32_t *open;   /* rows that are open at the end of the block, outermost first */
    size_t open_count;
    size_t capacity;
} sj_block_rows;

static inline bool sj_row_ended(const sj_block_rows *rows, size_t row)
{
    return rows->endings[row] != SJ_NOT_ENDED;
}

void sj_block_rows_deinit(sj_block_rows *rows); /* safe on zeroed rows */

/* Allocates `count` rows for the caller to fill in. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_rows_reserve(sj_block_rows *rows, size_t count);

/* Fills `rows` from a block that was decoded with structure, tail calls and, if `times`, times.
 * Fails with SJ_ENOMEM, and with SJ_ECORRUPT if the events contradict the calls that were open at
 * the start of the block. */
SJ_MUST_CHECK sj_status sj_block_rows_build(sj_block_rows *rows, const sj_block *block, bool times);

#endif
