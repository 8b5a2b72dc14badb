/* One process as the drain sees it: its arena, its threads, their assemblers and streams.
 * Used by the drain's thread only. */
#ifndef SJ_AGENT_CONTROL_DRAINED_PROCESS_H
#define SJ_AGENT_CONTROL_DRAINED_PROCESS_H

#include "agent/control/drain.h"
#include "agent/control/profiler.h"
#include "agent/control/thread_reader.h"

#include <limits.h>

/* What all processes of a drain share. */
typedef struct sj_drain_shared {
    sj_drain_options options;
    sj_block_encoder *encoder;
    uint32_t clock_step;
    sj_record *buffer;        /* SJ_CHUNK_RECORDS */
    sj_journal_data *journal; /* where numbers are taken from; the drain's own when none is given */
    sj_drain_counters ended;  /* sums over threads that have ended */
    _Atomic pid_t held_pid;   /* not to be read yet; 0: none */
    sj_preopened_call *preopened; /* of preopened_pid; set before held_pid becomes 0 */
    size_t preopened_count;
    pid_t preopened_pid;
    uint64_t preopened_ticks;
    sj_triggers *triggers; /* NULL: no policy */
    sj_flight *flight;     /* NULL: not in flight mode */
    sj_stacks *stacks;     /* NULL: no trigger asks for stacks */
    sj_governor *governor; /* NULL: no budget */
    sj_profiler *profiler; /* NULL: blocks are sent */
    uint64_t next_profile_ns;
    uint64_t next_checkpoint_ns;
    uint64_t window_ns;     /* of profiling; 0: until the end, or `window_end_ns` is known */
    uint64_t window_end_ns; /* a window after the first record; 0: not known */
} sj_drain_shared;

static inline uint64_t sj_drain_next_thread(const sj_drain_shared *shared)
{
    return atomic_fetch_add(&shared->journal->next_thread, 1) + 1;
}

static inline uint32_t sj_drain_next_stream(const sj_drain_shared *shared)
{
    return atomic_fetch_add(&shared->journal->next_stream, 1) + 1;
}

typedef struct sj_drained_thread sj_drained_thread;

typedef struct sj_drained_process {
    sj_drain_shared *shared;
    uint64_t number;
    pid_t pid;
    sj_governed *governed; /* NULL: not */
    bool was_governed;     /* it has been tried */
    sj_freed *freed;
    int pidfd; /* -1: the kernel has none; /proc is asked */
    char arena_path[PATH_MAX];
    bool is_open;
    bool is_confined; /* by seccomp: its agent makes no system calls any more */
    bool is_bad;      /* its arena is not one: never read */
    bool is_finishing;
    sj_arena_view view;
    sj_drained_thread **threads; /* by slot */
    uint64_t next_flush_ns;
    uint64_t next_look_ns; /* for ended threads and the open chunks */
} sj_drained_process;

SJ_MUST_CHECK sj_status sj_drained_process_new(sj_drain_shared *shared, uint64_t number, pid_t pid,
                                               const char *arena_name,
                                               sj_drained_process **process);
void sj_drained_process_free(sj_drained_process *process);

/* sj_drained_process_poll reads what is ready and adds the number of records to `*records`.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_poll(sj_drained_process *process, uint64_t now_ns,
                                                uint64_t *records);

/* sj_drained_process_flush cuts blocks of what its threads have. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_flush(sj_drained_process *process);

/* sj_drained_process_catch_up reads all that is written so far, open chunks included, and cuts
 * blocks of it. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_catch_up(sj_drained_process *process, uint64_t now_ns);

/* sj_drained_process_set_policy makes its threads obey the policy of the drain, and announces them
 * again when `announce`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_set_policy(sj_drained_process *process, bool announce);

/* sj_drained_process_block takes a block of its thread number `thread` to where the mode wants it:
 * the spool, the profile's sums, the flight ring. SJ_EFULL: refused. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_block(const sj_drained_process *process, uint64_t thread,
                                                 const sj_block_header *header, sj_slice bytes);

/* sj_drained_process_has_thread tells whether a thread is alive. */
bool sj_drained_process_has_thread(const sj_drained_process *process, uint32_t tid);

/* sj_drained_process_is_gone tells whether the process has ended. */
bool sj_drained_process_is_gone(const sj_drained_process *process);

/* sj_drained_process_finish reads the rest, ends all streams and tells the roster. `is_gone`: the
 * process is dead; otherwise it goes on without a drain. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_drained_process_finish(sj_drained_process *process, bool is_gone);

/* sj_drained_process_add_counters adds the figures of the threads that still run. */
void sj_drained_process_add_counters(const sj_drained_process *process,
                                     sj_drain_counters *counters);

#endif
