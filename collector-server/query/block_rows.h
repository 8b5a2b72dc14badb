/* The calls entered in one decoded block, as columns: what single-call queries read.
 *
 * A row is a call that was entered in the block. A call whose exit lies in a later block is listed
 * in `open`; its end, self time, ending and flags come from the late leaves of that later block.
 * Memory is reused from block to block and grows to the largest block seen. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_ROWS_H

#include "proto/block/block.h"

#define SJ_ROW_NO_PARENT UINT32_MAX /* the caller is no row of the block: see `parents` */

typedef struct sj_block_rows {
    size_t count;
    uint32_t *symbols; /* index in the block's dictionary */
    uint32_t *depths;  /* 0: called by nothing recorded */
    uint32_t *parents; /* row of the caller; SJ_ROW_NO_PARENT: frame `depth - 1` of the calls open
                          at the start of the block, or none when depth is 0 */
    uint64_t *indexes; /* number of the call in its stream; gaps within the block skip numbers */
    uint8_t *endings;  /* sj_ending */
    uint8_t *flags;    /* sj_call_flag */
    /* with times only */
    uint64_t *starts; /* ticks */
    uint64_t *ends;
    uint64_t *selves;
    uint32_t *open; /* rows still open at the end of the block, outermost first */
    size_t open_count;
    size_t capacity;
} sj_block_rows;

void sj_block_rows_deinit(sj_block_rows *rows); /* safe on a zeroed one */

/* sj_block_rows_build fills `rows` from a block decoded with its structure and, when `times`, its
 * times. SJ_ENOMEM; SJ_ECORRUPT when its events are not balanced against its key-frame. */
SJ_MUST_CHECK sj_status sj_block_rows_build(sj_block_rows *rows, const sj_block *block, bool times);

#endif
