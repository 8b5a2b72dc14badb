/* The thread emitter: sends what the drain knows of one thread: its frame, blocks, gaps and marks.
 * It settles the read progress with what is stored. Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_THREAD_EMITTER_H
#define SJ_AGENT_DRAIN_THREAD_EMITTER_H

#include "agent/assembler/assembler.h"
#include "agent/drain/arena_view.h"
#include "agent/drain/drain_context.h"
#include "agent/drain/read_progress.h"
#include "agent/policy/thread_filter.h"

/* Set the members up to `name` and zero the others. */
typedef struct sj_thread_emitter {
    sj_drain_shared *shared;   /* borrowed */
    const sj_arena_view *view; /* borrowed; NULL: the thread has no slot */
    uint32_t slot;
    uint64_t process;
    uint64_t number;
    uint32_t tid;
    bool is_main;
    uint64_t start_ticks;
    char name[SJ_THREAD_NAME_BYTES];
    const sj_assembler *assembler; /* borrowed; only its counters are read */
    sj_read_progress progress;     /* not used without a slot */
    uint64_t ended_ticks;
    bool is_announced; /* the thread's frame was sent */
    uint32_t *streams;
    size_t stream_count;
    size_t stream_capacity;
    uint64_t reported_lost_calls; /* losses reported by gaps in stored blocks */
    uint64_t reported_lost_events;
    int64_t known_endings; /* offered endings without records; they are not counted as unsent */
    /* calls in its discard window, which the slot's counters do not include */
    uint64_t discarded_calls;
    uint64_t discarded_events;
} sj_thread_emitter;

/* Writes the callbacks by which an assembler delivers to the emitter. */
void sj_thread_emitter_sink(sj_thread_emitter *emitter, sj_assembler_sink *sink);
void sj_thread_emitter_deinit(sj_thread_emitter *emitter);

/* sj_thread_emitter_announce sends the thread's frame. sj_thread_emitter_update sends it again,
 * unless it was never sent. Both return the errors of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_thread_emitter_announce(sj_thread_emitter *emitter);
SJ_MUST_CHECK sj_status sj_thread_emitter_update(sj_thread_emitter *emitter);

/* Change when the thread started, if `ticks` is earlier, or its name. The slot keeps both, because
 * a recorder that continues after a kill sends the frame again from there. */
void sj_thread_emitter_start_earlier(sj_thread_emitter *emitter, uint64_t ticks);
void sj_thread_emitter_rename(sj_thread_emitter *emitter, const char name[SJ_THREAD_NAME_BYTES]);

/* Settles the read progress after a flush of the assembler. */
void sj_thread_emitter_settle(sj_thread_emitter *emitter);

/* Reports by a gap what a killed recorder, or a failed step, had read and not yet written to the
 * spool. Returns the errors of sj_frame_writer_gap. */
SJ_MUST_CHECK sj_status sj_thread_emitter_report_unsent(sj_thread_emitter *emitter);

/* Sends what remains after the assembler has ended at `now_ticks`: losses that no stored block
 * reports, and the thread's last frame. Returns the errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_thread_emitter_end(sj_thread_emitter *emitter, uint64_t now_ticks);

#endif
