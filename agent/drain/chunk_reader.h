/* The thread reader: reads the chunks of one thread slot in the order in which they were filled and
 * feeds the thread's assembler. One drain thread; no I/O.
 *
 * Rules of the arena that it keeps: records are read up to the first slot that is not written; a
 * chunk goes back to its thread when it is closed and read; a slot that was reserved and never
 * written (its handler was left by longjmp) is waited for, then counted as torn, and its chunk is
 * kept from its thread until the slot is written or the thread has ended. */
#ifndef SJ_AGENT_DRAIN_CHUNK_READER_H
#define SJ_AGENT_DRAIN_CHUNK_READER_H

#include "agent/drain/arena_view.h"
#include "agent/drain/call_filter.h"
#include "agent/drain/receiver_rewriter.h"
#include "agent/drain/renamed_functions.h"
#include "agent/drain/untimed_records.h"

/* How long a hole may last before it counts as torn. */
#define SJ_TORN_NS UINT64_C(2000000000)

typedef enum sj_read_mode {
    SJ_READ_CLOSED, /* closed chunks only: leaves the cache lines of a busy thread alone */
    SJ_READ_ALL,    /* the open chunk as well */
    SJ_READ_REST,   /* likewise, and nobody reads on: a place that is filled in part, too */
    SJ_READ_LAST    /* the thread is gone: everything, holes counted at once */
} sj_read_mode;

typedef struct sj_chunk_reader {
    const sj_arena_view *view;
    uint32_t slot;
    sj_assembler *assembler;
    sj_renamed_functions renamed;
    sj_receiver_rewriter receivers;
    bool has_values; /* among the records at hand */
    bool has_shorts; /* likewise */
    sj_call_filter filter;
    sj_call_timing *timing;      /* borrowed; NULL: all calls are timed, as far as is known */
    sj_untimed_records *untimed; /* NULL: no short record was met, and nobody asked */
    sj_record *buffer;           /* SJ_CHUNK_RECORDS, shared by the readers of one drain */
    uint64_t sequence;           /* of the chunk that is read, from 1 */
    int chunk;                   /* its number; -1: to be found */
    uint32_t position;           /* records of it that are read */
    uint32_t resume_at;          /* where to begin in the next chunk that is found */
    bool has_holes;              /* some of them were skipped */
    uint64_t stalled_ns;         /* since when the record at `position` is waited for; 0: not */
    uint64_t backed_chunks;      /* bits: their pages have memory */
    uint64_t kept_chunks;        /* bits: read, closed, but with a hole */
    uint64_t records;
    uint64_t torn;
    uint64_t short_records; /* met so far */
    uint64_t noted_calls;   /* drops that the thread itself reported in its stream */
    uint64_t noted_events;
    uint32_t feeding; /* records that are being fed behind `position` */
    uint64_t unsent;  /* events, fed or known to be lost, that the spool does not account for */
    uint64_t unsent_calls; /* of them, those of lost calls */
} sj_chunk_reader;

void sj_chunk_reader_init(sj_chunk_reader *reader, const sj_arena_view *view, uint32_t slot,
                          sj_assembler *assembler, sj_record *buffer);

void sj_chunk_reader_deinit(sj_chunk_reader *reader);

/* sj_chunk_reader_count makes that records teach `timing` (borrowed) how long calls last.
 * SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_chunk_reader_count(sj_chunk_reader *reader, sj_call_timing *timing);

/* sj_chunk_reader_settle_times feeds records that wait for the time of a later one: none comes.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_chunk_reader_settle_times(sj_chunk_reader *reader);

/* sj_chunk_reader_resume goes on at the slot's cursor. `stored_blocks` is how many blocks of the
 * session are in the spool; it decides whether the one that was on its way is. */
void sj_chunk_reader_resume(sj_chunk_reader *reader, uint64_t stored_blocks);

/* sj_chunk_reader_save moves the slot's cursor behind all that was fed: what is fed will not be
 * read again. To be called before anything of it goes to the spool. */
void sj_chunk_reader_save(sj_chunk_reader *reader);

/* sj_chunk_reader_offer notes what sj_chunk_reader_sent will get about a block, before the
 * block goes to the spool: a kill between the two then counts nothing as lost that is stored.
 * `number` is the block's in its session, from 1. Either _sent or _refused follows. */
void sj_chunk_reader_offer(sj_chunk_reader *reader, uint64_t number, uint64_t calls,
                           uint64_t events);
void sj_chunk_reader_refused(sj_chunk_reader *reader);

/* sj_chunk_reader_sent says that so many events of what was fed are in the spool now, and that it
 * accounts for so many lost calls. */
void sj_chunk_reader_sent(sj_chunk_reader *reader, uint64_t calls, uint64_t events);

/* sj_chunk_reader_settle says that the spool has or accounts for all that was fed, but for so many
 * lost calls and events, and for what waits for the time of a later record. */
void sj_chunk_reader_settle(sj_chunk_reader *reader, uint64_t calls, uint64_t events);

/* sj_chunk_reader_read feeds what there is; `*count` is the number of records. What is written
 * meanwhile may be left for the next time, but for SJ_READ_LAST. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_chunk_reader_read(sj_chunk_reader *reader, sj_read_mode mode,
                                             uint64_t now_ns, uint64_t *count);

#endif
