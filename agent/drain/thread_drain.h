/* The drain's state of one thread: its pipeline, and what is known about the thread itself. */
#ifndef SJ_AGENT_DRAIN_THREAD_DRAIN_H
#define SJ_AGENT_DRAIN_THREAD_DRAIN_H

#include "agent/drain/chunk_reader.h"
#include "agent/drain/process_drain.h"
#include "agent/drain/record_stages.h"
#include "agent/drain/thread_emitter.h"
#include "agent/drain/thread_times.h"

/* The thread's pipeline. Records move from `reader` through `stages` to `assembler`, and its blocks
 * to `emitter`. */
struct sj_thread_drain {
    sj_process_drain *process;
    sj_chunk_reader reader;
    sj_record_stages stages;
    sj_assembler *assembler;
    sj_thread_emitter emitter;
    uint64_t next_name_ns; /* when its name is read next */
    uint64_t name_pause_ns;
    uint64_t unflushed; /* events since the last flush */
    uint64_t gone_ns;   /* when its tid was first missing; 0: the tid exists */
    /* the arena's `slot_requests` some time after `gone_ns`; 0: not read yet */
    uint64_t gone_requests;
    sj_thread_clock clock; /* its CPU times */
};

/* Creates the state of the thread in `slot`. Its frame is sent at its end, or while it lives by
 * sj_thread_emitter_announce. Returns SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_thread_drain_new(sj_process_drain *process, uint32_t slot,
                                            sj_thread_drain **thread);
void sj_thread_drain_free(sj_thread_drain *thread);

/* Reads the thread's name if that is due, and applies the policy to a changed name.
 *
 * Names are read at growing intervals, and at every call if the policy chooses threads by name.
 * They are also read when the process finishes. For a dead process, it uses the last name that the
 * arena holds. */
void sj_thread_drain_follow_name(sj_thread_drain *thread);

/* Applies the drain's policy to the thread from now on. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_thread_drain_set_policy(sj_thread_drain *thread);

/* Reads the thread's CPU time. Returns the errors of sj_thread_times_send. */
SJ_MUST_CHECK sj_status sj_thread_drain_watch(sj_thread_drain *thread);

/* Reads the thread's records and adds their number to `*records`. Returns the errors of
 * sj_record_stages_feed. */
SJ_MUST_CHECK sj_status sj_thread_drain_read(sj_thread_drain *thread, sj_read_mode mode,
                                             uint64_t now_ns, uint64_t *records);

/* Writes what was fed since the last flush into blocks. Announces the thread first if needed.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_thread_drain_flush(sj_thread_drain *thread);

/* Ends the thread's streams. Reports drops without a note, the last blocks, losses that no block
 * reports, and the end of the thread. `orderly`: the thread left its stack while its process lived.
 * Returns SJ_ENOMEM, or an error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_thread_drain_end(sj_thread_drain *thread, bool orderly,
                                            unsigned block_flags);

void sj_thread_drain_add_counters(const sj_thread_drain *thread, sj_drain_counters *counters);

#endif
