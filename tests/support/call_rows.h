/* The calls of one decoded block, as arrays in preorder. The code is as simple as possible: tests
 * compare the fast readers of blocks (query/block_rows.h, callgraph) with it.
 *
 * A call belongs to the block in which it was entered. If it ends in a later block, its end is
 * SJ_CALL_NOT_ENDED here. A late exit of that later block (late_exits.h) completes the row. If no
 * late exit does, the call is still open, or the block in which it ended is missing. The first
 * block of a stream (first_event 0) also has rows for the calls that were open before recording. If
 * such a call ends in that block, it is among the block's late exits, too.
 *
 * One object is reused from block to block. Not thread-safe. */
#ifndef SJ_TESTS_SUPPORT_CALL_ROWS_H
#define SJ_TESTS_SUPPORT_CALL_ROWS_H

#include "proto/callgraph/callgraph.h"

#define SJ_CALL_NOT_ENDED UINT64_MAX
#define SJ_CALL_NO_PARENT UINT64_MAX

typedef struct sj_call_rows {
    size_t count;
    uint64_t *index;  /* number of the call in its stream, ascending */
    uint64_t *parent; /* index of its caller, or SJ_CALL_NO_PARENT */
    uint64_t *start_ticks;
    uint64_t *end_ticks; /* SJ_CALL_NOT_ENDED: the call does not end in this block */
    /* total duration of its callees that have ended; self = end - start - child */
    uint64_t *child_ticks;
    uint32_t *function; /* session-wide function id */
    uint32_t *depth;    /* 0: the recording has no caller */
    uint8_t *flags;     /* sj_call_flag bits, as far as this block shows */
    uint8_t *ending;    /* sj_ending; SJ_ENDING_OPEN if the call has not ended */
    /* All calls that are open at the end of the block, outermost first. The next key frame has the
     * same. */
    const sj_stack_frame *open;
    size_t open_count;
} sj_call_rows;

typedef struct sj_call_reader sj_call_reader;

SJ_MUST_CHECK sj_status sj_call_reader_new(sj_call_reader **reader);
void sj_call_reader_free(sj_call_reader *reader);

/* Reads the rows of a CALLS block that was decoded with SJ_WANT_ALL. The rows belong to the reader
 * until its next call. Returns SJ_ECORRUPT, SJ_ENOMEM, or the status of `lookup` on failure. */
SJ_MUST_CHECK sj_status sj_call_reader_read(sj_call_reader *reader, const sj_block *block,
                                            sj_stack_lookup lookup, void *lookup_context,
                                            const sj_call_rows **rows);

#endif
