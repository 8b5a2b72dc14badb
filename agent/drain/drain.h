/* The drain: a thread, its own or its owner's, that reads the arenas of a session's processes and
 * turns their records into blocks, until the processes and the recording have ended. */
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

/* Pauses between steps that found nothing: each twice as long as the one before. */
enum { SJ_DRAIN_IDLE_MIN_NS = 250 * 1000, SJ_DRAIN_IDLE_MAX_NS = 2 * 1000 * 1000 };

typedef struct sj_drain_options {
    sj_frame_writer *writer;       /* borrowed */
    sj_registry *registry;         /* borrowed; notified when a process ends */
    const char *runtime_directory; /* where the arenas are; borrowed */
    sj_zombies *zombies;           /* polled; borrowed; NULL: none */
    const sj_journal *journal;     /* borrowed; NULL: nobody can take over */
    bool salvage;                  /* the recorder before was killed: go on at the slots' cursors */
    const sj_policy *policy;       /* borrowed; NULL: trace everything */
    sj_function_rules *rules;      /* of the policy; borrowed */
    double ns_per_tick;            /* with a policy */
    double call_ns;                /* what a call costs its thread, for the budget */
    sj_flight_recorder *flight;    /* salvage: takes all blocks, shipped at the end; NULL: none */
    uint32_t flush_ms;             /* blocks are cut for the live view so often; 0: 1000 */
    bool may_count_calls;          /* agents count, whenever a policy asks for it */
    bool threadless;               /* the owner makes the steps; all calls come from its thread */
} sj_drain_options;

typedef struct sj_drain_counters {
    uint64_t processes; /* whose arena was found */
    uint64_t live_processes;
    uint64_t
        other_programs; /* that processes run after the recorded one, and that have not ended */
    uint64_t threads;
    uint64_t records;
    uint64_t calls; /* entries that were read */
    uint64_t returned;
    uint64_t unwound;
    uint64_t longest_throw;   /* most calls of a runtime that one exception ended, in one thread */
    uint64_t inherited_exits; /* in forked processes, of calls of the parent's: nothing is lost */
    uint64_t orphan_exits;
    uint64_t lost_calls; /* all of it: rings, torn slots, refused blocks, thread slots */
    uint64_t lost_events;
    uint64_t dropped_events;    /* of those, in rings that were full */
    uint64_t handler_events;    /* of those, of signal handlers that interrupted the slow path */
    uint64_t refused_threads;   /* that found no slot */
    uint64_t refused_functions; /* that had no room for their values or rules */
    uint64_t refused_pages;     /* times that the arena's file system had no memory for a thread */
    uint64_t lost_values;       /* also of calls that filters leave out */
    uint64_t unrecorded[SJ_UNRECORDED_KINDS]; /* programs run, processes forked, by sj_unrecorded */
    uint64_t agent_cpu_ns;                    /* of the agents, in starting, following and ending */
    uint64_t torn;
    uint64_t short_records; /* among the records: without a clock */
    uint64_t waited_ticks;
    uint64_t salvaged_processes;          /* that died without an orderly end */
    uint64_t processes_without_arena;     /* that never began to record */
    uint64_t dumps;                       /* child sessions that the flight recorder shipped */
    uint32_t disarm_reason;               /* of the first process that disarmed; 0: none */
    sj_overhead_governor_counters budget; /* zeroed when there is none */
    uint64_t cpu_ns;                      /* of the drain's thread */
    uint64_t watched_cpu_ns;              /* of threads of processes that have ended, while they */
    uint64_t watched_ready_ns;            /* were watched; and their waits for a processor */
    uint64_t unreported_calls;            /* lost, and no gap could be sent that reports them */
    uint64_t unreported_events;
    sj_status failure; /* what ended the drain early: SJ_ENOMEM */
} sj_drain_counters;

SJ_MUST_CHECK sj_status sj_drain_start(const sj_drain_options *options, sj_drain **drain,
                                       sj_error *error);

/* sj_drain_step reads what is there and keeps house when it is time; `*busy`: there may be more at
 * once. Without a thread only. SJ_ENOMEM, or another failure, ends the drain: further steps fail.
 */
SJ_MUST_CHECK sj_status sj_drain_step(sj_drain *drain, bool *busy);

/* sj_drain_add hands a process over; the arena may still have to appear. Any thread. A process of
 * the same pid that is already there has replaced its program and is finished first. */
SJ_MUST_CHECK sj_status sj_drain_add(sj_drain *drain, uint64_t process, pid_t pid,
                                     const char *arena_name);

/* A call that was open when recording began; outermost first for each thread. */
typedef struct sj_open_call_at_attach {
    pid_t tid;
    uint32_t function;
    uint64_t stack; /* address of its return address */
} sj_open_call_at_attach;

/* sj_drain_time_step returns the steps in which times of calls are kept, in ticks. Before the
 * policy is changed; any thread. */
uint32_t sj_drain_time_step(const sj_drain *drain);

/* sj_drain_hold makes the drain leave the records of `pid`, which is going to be attached to, alone
 * until sj_drain_preopen. One process at a time. Any thread. */
void sj_drain_hold(sj_drain *drain, pid_t pid);

/* sj_drain_preopen hands over what was open at `ticks` and lets the drain go on. `calls` is copied;
 * NULL with 0: nothing is known. SJ_ENOMEM: nothing is handed over. Any thread. */
SJ_MUST_CHECK sj_status sj_drain_preopen(sj_drain *drain, pid_t pid,
                                         const sj_open_call_at_attach *calls, size_t count,
                                         uint64_t ticks);

/* sj_drain_suspend_budget makes the overhead budget leave the processes alone, so that the caller
 * may trace them; sj_drain_resume_budget lets it begin again, with the budget of the present
 * policy. False: a JVM still changes its classes for it after `limit_ns`, and this is to be called
 * again. Blocking: milliseconds, or so long. The thread that started the drain. */
SJ_MUST_CHECK bool sj_drain_suspend_budget(sj_drain *drain, uint64_t limit_ns);
void sj_drain_resume_budget(sj_drain *drain);

/* sj_drain_set_policy puts another policy and its rules (borrowed) in the place of those before,
 * which are not used any more when it returns: what was recorded until now is sent as the old mode
 * asks. Blocking: until the drain has caught up. The thread that started the drain, while the
 * budget rests. SJ_ENOMEM, SJ_ECLOSED the drain has failed. */
SJ_MUST_CHECK sj_status sj_drain_set_policy(sj_drain *drain, const sj_policy *policy,
                                            sj_function_rules *rules);

/* sj_drain_share_freed shares what the drain knows of functions of a process that were unhooked
 * (freed.h), with who is about to change that: `*freed` is to be released; NULL: there is no such
 * process, or the drain has failed. As sj_drain_set_policy. */
SJ_MUST_CHECK sj_status sj_drain_share_freed(sj_drain *drain, uint64_t process,
                                             sj_unhooked_set **freed);

/* sj_drain_catch_up reads and sends what a process, if it is there, has recorded until now. As
 * sj_drain_set_policy. */
SJ_MUST_CHECK sj_status sj_drain_catch_up(sj_drain *drain, uint64_t process);

/* sj_drain_stall hands it to them that a watched thread has not answered for so long. Any thread.
 */
void sj_drain_stall(sj_drain *drain, const char *name, uint64_t waited_ticks);

/* sj_drain_signal hands a mark or a command from outside to the triggers. Any thread. */
void sj_drain_signal(sj_drain *drain, sj_trigger_event event, const char *name);

void sj_drain_get_counters(sj_drain *drain, sj_drain_counters *counters);

/* sj_drain_finish reads what is left of all processes, the living ones included, sends their last
 * frames and ends the thread. After a failed step it reads the arenas again, from where each thread
 * was sent last; if that fails, too, it reports the rest as lost. Blocking. The counters stay
 * readable. */
void sj_drain_finish(sj_drain *drain);
void sj_drain_free(sj_drain *drain);

#endif
