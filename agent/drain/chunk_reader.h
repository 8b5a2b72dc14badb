/* The chunk reader: reads the chunks of one thread slot in the order in which they were filled. It
 * feeds the records to the thread's assembler. Used by one drain thread; does no I/O.
 *
 * Rules: The reader reads up to the first record that is not written. It returns a chunk to its
 * thread once the chunk is closed and read. A record can be reserved and never written, if longjmp
 * left its signal handler. The reader waits for such a record, then counts it as torn. It keeps the
 * chunk until the record is written or the thread has ended. */
#ifndef SJ_AGENT_DRAIN_CHUNK_READER_H
#define SJ_AGENT_DRAIN_CHUNK_READER_H

#include "agent/drain/arena_view.h"
#include "agent/drain/call_filter.h"
#include "agent/drain/receiver_rewriter.h"
#include "agent/drain/renamed_functions.h"
#include "agent/drain/untimed_records.h"

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
    sj_assembler *assembler;
    sj_renamed_functions renamed;
    sj_receiver_rewriter receivers;
    bool has_values; /* the records being fed contain values */
    bool has_shorts; /* the records being fed contain short records */
    sj_call_filter filter;
    sj_call_timing *timing;      /* borrowed; NULL: no function is known to be counted */
    sj_untimed_records *untimed; /* NULL: not needed until now */
    sj_record *buffer;           /* SJ_CHUNK_RECORDS records, shared by the readers of one drain */
    uint64_t sequence;           /* sequence number of the current chunk, from 1 */
    int chunk;                   /* index of the current chunk; -1: not found yet */
    uint32_t position;           /* number of its records that are read */
    uint32_t resume_at;          /* position at which to start in the next chunk */
    bool has_holes;              /* unwritten records of the chunk were skipped */
    /* since when the reader waits for the record at `position`; 0: it does not */
    uint64_t stalled_ns;
    uint64_t backed_chunks; /* bit set of chunks whose pages have memory */
    /* bit set of chunks that are closed and read, but have unwritten records */
    uint64_t kept_chunks;
    uint64_t records;
    uint64_t torn;
    uint64_t short_records; /* short records read so far */
    uint64_t noted_calls;   /* dropped calls that notes of the thread have reported */
    uint64_t noted_events;
    uint32_t feeding; /* records after `position` that are being fed */
    uint64_t unsent;  /* events that were fed or lost and that the spool does not account for */
    uint64_t unsent_calls; /* the lost calls among `unsent` */
} sj_chunk_reader;

void sj_chunk_reader_init(sj_chunk_reader *reader, const sj_arena_view *view, uint32_t slot,
                          sj_assembler *assembler, sj_record *buffer);

void sj_chunk_reader_deinit(sj_chunk_reader *reader);

/* Makes the reader report the durations of timed calls to `timing` (borrowed). Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_chunk_reader_count(sj_chunk_reader *reader, sj_call_timing *timing);

/* Feeds the records that wait for the time of a later record, because none will follow. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_chunk_reader_settle_times(sj_chunk_reader *reader);

/* Continues at the slot's cursor. The offers of a killed consumer are settled (stored_offers.h). */
void sj_chunk_reader_resume(sj_chunk_reader *reader);

/* Moves the slot's cursor past all records that were fed, so that they are not read again. Call it
 * before any of them goes to the spool. */
void sj_chunk_reader_save(sj_chunk_reader *reader);

/* Writes to the slot's offer, before a block, a gap or sums are stored, what sj_chunk_reader_sent
 * will subtract. If the recorder is killed between the two, the next recorder counts no stored
 * event as lost. `number` is as in sj_slot_offer. Call sj_chunk_reader_sent or
 * sj_chunk_reader_refused afterwards. */
void sj_chunk_reader_offer(sj_chunk_reader *reader, uint64_t number, uint64_t calls,
                           uint64_t events);
void sj_chunk_reader_refused(sj_chunk_reader *reader);

/* Reports that `events` of the fed events are now stored, and that this accounts for `calls` lost
 * calls. UINT64_MAX stands for all unsent calls or events, also in sj_chunk_reader_offer. */
void sj_chunk_reader_sent(sj_chunk_reader *reader, uint64_t calls, uint64_t events);

/* Sets what the spool does not account for: `calls` lost calls, `events` events and the records
 * that still wait. */
void sj_chunk_reader_settle(sj_chunk_reader *reader, uint64_t calls, uint64_t events);

/* Feeds the readable records. Writes the number of places read to `*count`. May leave records that
 * are written meanwhile for the next call, except with SJ_READ_LAST. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_chunk_reader_read(sj_chunk_reader *reader, sj_read_mode mode,
                                             uint64_t now_ns, uint64_t *count);

#endif
