/* Call rows: the calls that one decoded block brings, as arrays in preorder, made in the
 * plainest way: what the fast readers of blocks (query/block_rows.h, callgraph) are held against.
 *
 * A call belongs to the block that it was entered in. When it ended in a later block, its end is
 * SJ_CALL_NOT_ENDED here and a late leave (late_leaves.h) of that block completes it; when there is
 * none, the call is still open, or the block that it ended in is missing. The first block of a
 * stream (first_event 0) also gives the calls that were open before recording; such a call that
 * ends in that block is among its late leaves, too.
 *
 * One object is reused from block to block. Not thread-safe. */
#ifndef SJ_TESTS_SUPPORT_CALL_ROWS_H
#define SJ_TESTS_SUPPORT_CALL_ROWS_H

#include "proto/callgraph/callgraph.h"

#define SJ_CALL_NOT_ENDED UINT64_MAX
#define SJ_CALL_NO_PARENT UINT64_MAX

typedef struct sj_call_rows {
    size_t count;
    uint64_t *index;  /* of the call in its stream; rises */
    uint64_t *parent; /* index of its caller; SJ_CALL_NO_PARENT */
    uint64_t *start_ticks;
    uint64_t *end_ticks;   /* SJ_CALL_NOT_ENDED: not in this block */
    uint64_t *child_ticks; /* duration of its callees ended so far; self = end - start - child */
    uint32_t *function;    /* session-wide function id */
    uint32_t *depth;       /* 0: called by nothing recorded */
    uint8_t *flags;        /* sj_call_flag, as far as this block knows */
    uint8_t *ending;       /* sj_ending; SJ_ENDING_OPEN while not ended */
    /* All calls open at the end of the block, outermost first, as the next key-frame has them. */
    const sj_stack_frame *open;
    size_t open_count;
} sj_call_rows;

typedef struct sj_call_reader sj_call_reader;

SJ_MUST_CHECK sj_status sj_call_reader_new(sj_call_reader **reader);
void sj_call_reader_free(sj_call_reader *reader);

/* sj_call_reader_read gives the rows of a CALLS block decoded with SJ_WANT_ALL; they belong to the
 * reader until its next call. SJ_ECORRUPT, SJ_ENOMEM, or what `lookup` returned. */
SJ_MUST_CHECK sj_status sj_call_reader_read(sj_call_reader *reader, const sj_block *block,
                                            sj_stack_lookup lookup, void *lookup_context,
                                            const sj_call_rows **rows);

#endif
