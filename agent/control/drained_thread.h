/* One thread of a drained process: a reader, an assembler, and the frames about both. */
#ifndef SJ_AGENT_CONTROL_DRAINED_THREAD_H
#define SJ_AGENT_CONTROL_DRAINED_THREAD_H

#include "agent/control/drained_process.h"
#include "agent/control/thread_names.h"

struct sj_drained_thread {
    sj_drained_process *process;
    sj_thread_reader reader;
    sj_assembler *assembler;
    uint64_t number;
    uint32_t tid;
    uint64_t start_ticks;
    uint64_t ended_ticks;
    char name[SJ_THREAD_NAME_BYTES];
    uint32_t *streams;
    size_t stream_count;
    uint64_t told_lost_calls; /* by gaps inside of blocks that were appended */
    uint64_t told_lost_events;
    uint64_t known_endings; /* that were offered, and are no part of what is not sent */
    uint64_t unflushed;     /* events since the last flush */
    uint64_t gone_ns;       /* since when its tid is not there; 0: it is */
};

/* sj_drained_thread_new announces the thread of `slot`. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_drained_thread_new(sj_drained_process *process, uint32_t slot,
                                              sj_drained_thread **thread);
void sj_drained_thread_free(sj_drained_thread *thread);

/* sj_drained_thread_follow_name looks, where a policy chooses threads by name, whether the thread
 * has another one now, and whether it is wanted under that. */
void sj_drained_thread_follow_name(sj_drained_thread *thread);
/* sj_drained_thread_announce sends the thread's frame again. */
SJ_MUST_CHECK sj_status sj_drained_thread_announce(const sj_drained_thread *thread);

/* sj_drained_thread_set_policy makes the thread obey the policy of its drain from here on.
 * SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_drained_thread_set_policy(sj_drained_thread *thread);

SJ_MUST_CHECK sj_status sj_drained_thread_read(sj_drained_thread *thread, sj_read_mode mode,
                                               uint64_t now_ns, uint64_t *records);

/* sj_drained_thread_flush cuts blocks of what was fed since the last flush. */
SJ_MUST_CHECK sj_status sj_drained_thread_flush(sj_drained_thread *thread);

/* sj_drained_thread_end tells the rest: drops without a note, the last blocks, what no block could
 * tell, and the thread's end. `orderly`: it left its stack while its process lived. */
SJ_MUST_CHECK sj_status sj_drained_thread_end(sj_drained_thread *thread, bool orderly,
                                              unsigned block_flags);

void sj_drained_thread_add_counters(const sj_drained_thread *thread, sj_drain_counters *counters);

#endif
