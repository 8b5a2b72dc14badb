/* One thread of a drained process: a reader, an assembler, and the frames about both. */
#ifndef SJ_AGENT_DRAIN_THREAD_DRAIN_H
#define SJ_AGENT_DRAIN_THREAD_DRAIN_H

#include "agent/drain/process_drain.h"
#include "agent/drain/thread_times.h"
#include "agent/policy/thread_filter.h"

struct sj_thread_drain {
    sj_process_drain *process;
    sj_chunk_reader reader;
    sj_assembler *assembler;
    uint64_t number;
    uint32_t tid;
    uint64_t start_ticks;
    uint64_t ended_ticks;
    bool is_announced; /* its frame was sent */
    char name[SJ_THREAD_NAME_BYTES];
    uint64_t next_name_ns; /* for whether it has another name */
    uint64_t name_pause_ns;
    uint32_t *streams;
    size_t stream_count;
    size_t stream_capacity;
    uint64_t reported_lost_calls; /* by gaps inside of blocks that were appended */
    uint64_t reported_lost_events;
    int64_t known_endings;    /* that were offered, and are no part of what is not sent */
    uint64_t unflushed;       /* events since the last flush */
    uint64_t gone_ns;         /* since when its tid is not there; 0: it is */
    uint64_t gone_requests;   /* for slots, some time after; 0: not yet looked */
    sj_thread_clock clock;    /* when it was on the processor */
    uint64_t discarded_calls; /* dropped at the end, and not counted by its slot */
    uint64_t discarded_events;
};

/* sj_thread_drain_new makes the drain of the thread of `slot`. Its frame is sent when it ends, or,
 * if it lives, by sj_thread_drain_announce. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_thread_drain_new(sj_process_drain *process, uint32_t slot,
                                            sj_thread_drain **thread);
void sj_thread_drain_free(sj_thread_drain *thread);

/* sj_thread_drain_follow_name looks from time to time, and each time where a policy chooses threads
 * by name, whether the thread has another name now, and whether it is wanted under that. It also
 * looks when the process finishes; of one that is gone it takes the name noted in the arena. */
void sj_thread_drain_follow_name(sj_thread_drain *thread);
/* sj_thread_drain_announce sends the thread's frame, also again. */
SJ_MUST_CHECK sj_status sj_thread_drain_announce(sj_thread_drain *thread);

/* sj_thread_drain_set_policy makes the thread obey the policy of its drain from here on.
 * SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_thread_drain_set_policy(sj_thread_drain *thread);

/* sj_thread_drain_watch looks whether the thread has been on the processor. Errors of
 * sj_thread_times_send. */
SJ_MUST_CHECK sj_status sj_thread_drain_watch(sj_thread_drain *thread);

SJ_MUST_CHECK sj_status sj_thread_drain_read(sj_thread_drain *thread, sj_read_mode mode,
                                             uint64_t now_ns, uint64_t *records);

/* sj_thread_drain_flush cuts blocks of what was fed since the last flush, of a thread that is
 * announced from then on. */
SJ_MUST_CHECK sj_status sj_thread_drain_flush(sj_thread_drain *thread);

/* sj_thread_drain_end reports the remainder: drops without a note, the last blocks, what no block
 * shows, and the thread's end. `orderly`: it left its stack while its process lived. */
SJ_MUST_CHECK sj_status sj_thread_drain_end(sj_thread_drain *thread, bool orderly,
                                            unsigned block_flags);

void sj_thread_drain_add_counters(const sj_thread_drain *thread, sj_drain_counters *counters);

#endif
