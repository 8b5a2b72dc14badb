/* Deferred exits: the calls of earlier blocks that ended in a block, as encoded in `blocks.late`.
 *
 *   varint version (1 or 2) | varint count | per call, by rising call index:
 *   varint (index - previous index) | varint (end_ticks - blocks.first_ticks) | varint self_ticks |
 *   u8 ending | u8 flags | in version 2: varint: 0, or 1 + ticks from its tail call to its end
 *
 * Version 2 is for lists with a call that left by a tail call. The previous index of the first call
 * is 0.
 *
 * If the exit of a call lies in a later block, a reader finds it here without decoding that block.
 * The columns blocks.late_first_call and late_last_call bound the indexes. */
#ifndef SJ_COLLECTOR_SERVER_STORE_DEFERRED_EXITS_H
#define SJ_COLLECTOR_SERVER_STORE_DEFERRED_EXITS_H

#include "proto/callgraph/callgraph.h"

enum {
    SJ_DEFERRED_EXITS_VERSION = 1,
    SJ_DEFERRED_EXITS_TAIL_CALLS = 2, /* version of lists with tail calls */
    SJ_DEFERRED_EXITS_ENTRY_MAX_BYTES = 42
};

/* Returns the maximum encoded size of `count` calls, in bytes. */
static inline size_t sj_deferred_exits_bound(size_t count)
{
    return 16 + count * SJ_DEFERRED_EXITS_ENTRY_MAX_BYTES;
}

/* Writes `count` calls, sorted by rising index, into `output`. Returns SJ_EINVAL if they are not
 * sorted, or if a call ends before `first_ticks` or before its tail call. Returns SJ_ELIMIT if
 * `output` is too small. */
SJ_MUST_CHECK sj_status sj_deferred_exits_encode(const sj_deferred_exit *leaves, size_t count,
                                                 uint64_t first_ticks, uint8_t *output,
                                                 size_t capacity, size_t *size_bytes);

typedef struct sj_deferred_exits_reader {
    sj_reader reader;
    uint64_t version;
    uint64_t left;
    uint64_t call_index;
    uint64_t first_ticks;
} sj_deferred_exits_reader;

/* Starts reading an encoded list. The reader borrows `bytes`. Returns SJ_ECORRUPT or
 * SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_deferred_exits_open(sj_slice bytes, uint64_t first_ticks,
                                               sj_deferred_exits_reader *reader);

/* Reads the next call. Returns SJ_OK, SJ_EAGAIN after the last call, or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_deferred_exits_next(sj_deferred_exits_reader *reader,
                                               sj_deferred_exit *leave);

#endif
