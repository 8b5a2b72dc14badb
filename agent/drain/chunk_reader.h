/* The chunk reader: reads the chunks of one thread slot in the order in which they were filled, and
 * returns their records in batches. Used by one drain thread; does no I/O.
 *
 * Rules: The reader reads up to the first record that is not written. It returns a chunk to its
 * thread once the chunk is closed and read. A record can be reserved and never written, if longjmp
 * left its signal handler. The reader waits for such a record, then counts it as torn. It keeps the
 * chunk until the record is written or the thread has ended. */
#ifndef SJ_AGENT_DRAIN_CHUNK_READER_H
#define SJ_AGENT_DRAIN_CHUNK_READER_H

#include "agent/drain/arena_view.h"
#include "agent/drain/read_progress.h"
#include "agent/drain/record_batch.h"

/* Time after which an unwritten record counts as torn. */
#define SJ_TORN_NS UINT64_C(2000000000)

typedef enum sj_read_mode {
    SJ_READ_CLOSED, /* only closed chunks: does not touch the cache lines of a busy thread */
    SJ_READ_ALL,    /* the open chunk, too */
    SJ_READ_REST,   /* like SJ_READ_ALL, for the last time: also reads partly filled places */
    SJ_READ_LAST    /* the thread has ended: reads all, unwritten records are torn at once */
} sj_read_mode;

typedef struct sj_chunk_reader {
    const sj_arena_view *view;
    uint32_t slot;
    sj_read_progress *progress;
    sj_record *buffer; /* SJ_CHUNK_RECORDS records, shared by the readers of one drain */
    int chunk;         /* index of the current chunk; -1: not found yet */
    bool has_holes;    /* unwritten records of the chunk were skipped */
    /* since when the reader waits for the record at the position; 0: it does not */
    uint64_t stalled_ns;
    uint64_t backed_chunks; /* bit set of chunks whose pages have memory */
    /* bit set of chunks that are closed and read, but have unwritten records */
    uint64_t kept_chunks;
    uint64_t torn;
    uint64_t short_records; /* short records read so far */
    /* the current round: what sj_chunk_reader_start got, and how far it is */
    sj_read_mode mode;
    uint64_t now_ns;
    uint32_t chunks_left;
    bool has_read_ready; /* the places that were written up to `limit` were read */
    bool is_closed;      /* the current chunk was closed when it was last looked at */
    uint32_t limit;      /* number of its places that may hold data */
} sj_chunk_reader;

/* Initializes a reader that begins where `progress` stands. All pointers are borrowed. */
void sj_chunk_reader_init(sj_chunk_reader *reader, const sj_arena_view *view, uint32_t slot,
                          sj_read_progress *progress, sj_record *buffer);

/* sj_chunk_reader_start begins a round of reading at `now_ns`. sj_chunk_reader_next then returns
 * the round's batches, one at a time, and false after the last one. A batch has either records or
 * lost events: torn records. Its records are borrowed until the next call, and its places may hold
 * short records. The progress counts a batch as read when it is returned.
 *
 * A round may leave records that are written meanwhile for the next round, except with
 * SJ_READ_LAST. */
void sj_chunk_reader_start(sj_chunk_reader *reader, sj_read_mode mode, uint64_t now_ns);
bool sj_chunk_reader_next(sj_chunk_reader *reader, sj_record_batch *batch);

#endif
