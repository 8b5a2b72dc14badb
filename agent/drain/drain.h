/* The drain: reads the arenas of a session's processes and turns their records into blocks. It runs
 * in its own thread or in its owner's, until the processes and the recording have ended. */
#ifndef SJ_AGENT_DRAIN_DRAIN_H
#define SJ_AGENT_DRAIN_DRAIN_H

#include "agent/abi/arena.h"
#include "agent/modes/flight_recorder.h"
#include "agent/modes/overhead_governor.h"
#include "agent/policy/policy.h"
#include "agent/registry/function_rules.h"
#include "agent/registry/registry.h"
#include "agent/session/frame_writer.h"
#include "agent/zombies/zombies.h"

typedef struct sj_drain sj_drain;

/* Pauses after steps that found no records. Each pause is twice as long as the previous one. */
enum { SJ_DRAIN_IDLE_MIN_NS = 250 * 1000, SJ_DRAIN_IDLE_MAX_NS = 2 * 1000 * 1000 };

typedef struct sj_drain_options {
    sj_frame_writer *writer;       /* borrowed */
    sj_registry *registry;         /* borrowed; notified when a process ends */
    const char *runtime_directory; /* directory of the arenas; borrowed */
    sj_zombies *zombies;           /* polled; borrowed; NULL: none */
    const sj_journal *journal;     /* borrowed; NULL: the session cannot be recovered */
    bool salvage;             /* the previous recorder was killed: continue at the slots' cursors */
    const sj_policy *policy;  /* borrowed; NULL: trace everything */
    sj_function_rules *rules; /* rules of the policy; borrowed */
    double ns_per_tick;       /* needed with a policy */
    double call_ns;           /* cost of a call for its thread, for the budget */
    /* only with `salvage`: gets all blocks, ships them at the end; NULL: none */
    sj_flight_recorder *flight;
    uint32_t flush_ms;    /* period of flushing blocks for the live view; 0 means 1000 */
    bool may_count_calls; /* agents count calls if a policy asks for it */
    bool threadless;      /* the owner calls sj_drain_step; all calls come from its thread */
} sj_drain_options;

typedef struct sj_drain_counters {
    uint64_t processes; /* number of processes whose arena was found */
    uint64_t live_processes;
    /* programs that recorded processes have executed, that are not recorded and still run */
    uint64_t other_programs;
    uint64_t threads;
    uint64_t records;
    uint64_t calls; /* entries that were read */
    uint64_t returned;
    uint64_t unwound;
    /* largest number of runtime calls that one exception ended in a thread */
    uint64_t longest_throw;
    /* exits in forked processes of calls that the parent began; no loss */
    uint64_t inherited_exits;
    /* Exits without a recorded entry: the entry was lost, or the function was hooked during the
     * call. Gaps with the reason "orphan" count them. They are not part of lost_events. */
    uint64_t orphan_exits;
    /* lost calls of all causes: full rings, torn records, refused blocks, no slot */
    uint64_t lost_calls;
    uint64_t lost_events;
    uint64_t dropped_events; /* part of lost_events: events dropped in full rings */
    /* part of lost_events: events of signal handlers that interrupted the slow path */
    uint64_t handler_events;
    uint64_t refused_threads;   /* threads that found no slot */
    uint64_t refused_functions; /* functions whose values or rules did not fit */
    /* number of times that the arena's file system had no memory for a thread */
    uint64_t refused_pages;
    uint64_t lost_values; /* includes values of calls that filters drop */
    /* executed programs and forked processes, by sj_unrecorded */
    uint64_t unrecorded[SJ_UNRECORDED_KINDS];
    uint64_t agent_cpu_ns; /* CPU time of the agents in starting, following and ending */
    uint64_t torn;
    uint64_t short_records; /* part of `records`: records without a clock */
    uint64_t waited_ticks;
    uint64_t salvaged_processes;          /* processes that died without an orderly end */
    uint64_t processes_without_arena;     /* processes that never began to record */
    uint64_t processes_unreadable;        /* processes whose arena cannot be read */
    uint64_t dumps;                       /* child sessions that the flight recorder shipped */
    uint32_t disarm_reason;               /* reason of the first process that disarmed; 0: none */
    sj_overhead_governor_counters budget; /* zero without a budget */
    uint64_t cpu_ns;                      /* CPU time of the drain's thread */
    uint64_t watched_cpu_ns;   /* CPU time of threads of ended processes, while watched */
    uint64_t watched_ready_ns; /* time that these threads waited for a processor, while watched */
    uint64_t unreported_calls; /* lost calls for which no gap could be sent */
    uint64_t unreported_events;
    sj_status failure; /* why the drain stopped early: SJ_ENOMEM */
} sj_drain_counters;

/* Creates the drain and, unless it is threadless, starts its thread. Returns SJ_ENOMEM, or SJ_EIO
 * if a thread cannot start. */
SJ_MUST_CHECK sj_status sj_drain_start(const sj_drain_options *options, sj_drain **drain,
                                       sj_error *error);

/* Reads the available records and does periodic work if it is due. Sets `*busy` if more records may
 * be available at once. Only for a drain without a thread. SJ_ENOMEM, or another failure, ends the
 * drain: all later steps fail. */
SJ_MUST_CHECK sj_status sj_drain_step(sj_drain *drain, bool *busy);

/* Adds a process. Its arena may not exist yet. Any thread may call this. If the drain already has a
 * process with this pid, that process has replaced its program and is finished first. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_drain_add(sj_drain *drain, uint64_t process, pid_t pid,
                                     const char *arena_name);

/* A call that was open when recording began. The calls of each thread are listed outermost
 * first. */
typedef struct sj_open_call_at_attach {
    pid_t tid;
    uint32_t function;
    uint64_t stack; /* address of the call's return address */
} sj_open_call_at_attach;

/* Returns the step to which the times of calls are rounded, in ticks. Any thread may call this
 * until the policy is changed. */
uint32_t sj_drain_time_step(const sj_drain *drain);

/* Makes the drain ignore the records of `pid` until sj_drain_preopen. Call it before attaching to
 * that process. Only one process at a time. Any thread may call this. */
void sj_drain_hold(sj_drain *drain, pid_t pid);

/* Passes the calls that were open at `ticks` and ends sj_drain_hold. `calls` is copied. NULL with a
 * count of 0 means that they are unknown. On SJ_ENOMEM no call is passed. Any thread may call
 * this. */
SJ_MUST_CHECK sj_status sj_drain_preopen(sj_drain *drain, pid_t pid,
                                         const sj_open_call_at_attach *calls, size_t count,
                                         uint64_t ticks);

/* sj_drain_suspend_budget stops the changes of the overhead budget, so that the caller may trace
 * the processes. Returns false if a JVM is still changing classes for the budget after `limit_ns`:
 * call it again. Blocks for milliseconds, or up to `limit_ns`.
 *
 * sj_drain_resume_budget continues with the budget of the current policy. Only the thread that
 * started the drain may call both. */
SJ_MUST_CHECK bool sj_drain_suspend_budget(sj_drain *drain, uint64_t limit_ns);
void sj_drain_resume_budget(sj_drain *drain);

/* Replaces the policy and its rules (borrowed). When it returns, the drain no longer uses the
 * previous ones. What was recorded until now is sent as the previous mode requires.
 *
 * Blocks until the drain has read all records. Only the thread that started the drain may call it,
 * while the budget is suspended. Returns SJ_ENOMEM, or SJ_ECLOSED if the drain has failed. */
SJ_MUST_CHECK sj_status sj_drain_set_policy(sj_drain *drain, const sj_policy *policy,
                                            sj_function_rules *rules);

/* Writes a shared reference to the set of unhooked functions of a process (unhooked_set.h) to
 * `*freed`. The caller is about to change that set, and releases the reference. Writes NULL if the
 * process does not exist or the drain has failed. Blocking, threads and errors are as for
 * sj_drain_set_policy. */
SJ_MUST_CHECK sj_status sj_drain_share_freed(sj_drain *drain, uint64_t process,
                                             sj_unhooked_set **freed);

/* Reads and sends what a process has recorded until now. Does nothing if the process does not
 * exist. Blocking, threads and errors are as for sj_drain_set_policy. */
SJ_MUST_CHECK sj_status sj_drain_catch_up(sj_drain *drain, uint64_t process);

/* Reports to the triggers that a watched thread has not responded for `waited_ticks`. Any thread
 * may call this. */
void sj_drain_stall(sj_drain *drain, const char *name, uint64_t waited_ticks);

/* Reports a mark or a command from outside to the triggers. Any thread may call this. */
void sj_drain_signal(sj_drain *drain, sj_trigger_event event, const char *name);

void sj_drain_get_counters(sj_drain *drain, sj_drain_counters *counters);

/* Reads the rest of all processes, including living ones, sends their last frames and ends the
 * drain's thread.
 *
 * After a failed step, it reads the arenas again, from the position up to which each thread was
 * sent. If that fails, too, it reports the rest as lost. Blocks. The counters stay readable. */
void sj_drain_finish(sj_drain *drain);
void sj_drain_free(sj_drain *drain);

#endif
