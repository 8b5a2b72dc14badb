/* State shared by all processes and threads of one drain. Used by the drain's thread only, except
 * for atomic members. */
#ifndef SJ_AGENT_DRAIN_DRAIN_CONTEXT_H
#define SJ_AGENT_DRAIN_DRAIN_CONTEXT_H

#include "agent/abi/record.h"
#include "agent/drain/drain.h"
#include "agent/drain/policy_judge.h"
#include "agent/modes/profile.h"
#include "agent/modes/stack_sampler.h"

typedef struct sj_drain_shared {
    sj_drain_options options;
    sj_block_encoder *encoder;
    uint32_t clock_step;
    uint32_t kept_step;       /* step of the times of calls that the policy keeps */
    sj_record *buffer;        /* SJ_CHUNK_RECORDS records */
    sj_journal_data *journal; /* source of new numbers; the drain's own if the options have none */
    sj_drain_counters ended;  /* totals of threads that have ended */
    bool resumes; /* a step failed: threads are read again from the cursors of their slots */
    _Atomic pid_t held_pid; /* process that must not be read yet; 0: none */
    /* open calls of preopened_pid; set before held_pid becomes 0 */
    sj_open_call_at_attach *preopened;
    size_t preopened_count;
    pid_t preopened_pid;
    uint64_t preopened_ticks;
    sj_triggers *triggers;          /* NULL without a policy */
    sj_flight_recorder *flight;     /* NULL: not in flight mode */
    sj_stack_sampler *stacks;       /* NULL: no trigger asks for stacks */
    sj_overhead_governor *governor; /* NULL without a budget */
    sj_profiler *profiler;          /* NULL: blocks are sent */
    uint64_t next_profile_ns;
    uint64_t window_ns; /* length of the profiling window; 0: no limit, or `window_end_ns` is set */
    uint64_t window_end_ns; /* end of the window, which begins at the first record; 0: unknown */
} sj_drain_shared;

/* Returns a judge of the current policy, which is valid until the policy changes. */
static inline sj_policy_judge sj_drain_judge(const sj_drain_shared *shared)
{
    return (sj_policy_judge){.policy = shared->options.policy,
                             .rules = shared->options.rules,
                             .triggers = shared->triggers,
                             .ns_per_tick = shared->options.ns_per_tick};
}

/* Returns the session's next thread number. */
static inline uint64_t sj_drain_next_thread(const sj_drain_shared *shared)
{
    return atomic_fetch_add(&shared->journal->next_thread, 1) + 1;
}

/* Returns the session's next stream number, for the thread `tid`. Informs the live function.txt, if
 * there is one. */
static inline uint32_t sj_drain_next_stream(const sj_drain_shared *shared, uint32_t tid)
{
    const uint32_t stream = atomic_fetch_add(&shared->journal->next_stream, 1) + 1;
    sj_function_log *log = sj_frame_writer_function_log(shared->options.writer);
    if (log != NULL) {
        sj_function_log_stream(log, stream, (int32_t)tid);
    }
    return stream;
}

#endif
