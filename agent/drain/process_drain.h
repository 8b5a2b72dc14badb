/* One process as the drain sees it: its arena, its threads, their assemblers and streams.
 * Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_PROCESS_DRAIN_H
#define SJ_AGENT_DRAIN_PROCESS_DRAIN_H

#include "agent/drain/chunk_reader.h"
#include "agent/drain/drain_context.h"
#include "agent/drain/thread_times.h"
#include "agent/drain/tracked_process.h"

#include <limits.h>

typedef struct sj_thread_drain sj_thread_drain;

typedef struct sj_process_drain {
    sj_drain_shared *shared;
    uint64_t number;
    sj_tracked_process tracked;
    sj_governed_process *governed; /* NULL: not */
    bool was_governed;             /* it has been tried */
    sj_unhooked_set *freed;
    char arena_path[PATH_MAX];
    bool is_open;
    bool is_confined; /* by seccomp: its agent makes no system calls any more */
    bool is_bad;      /* its arena is invalid and is never read */
    bool is_finishing;
    bool is_gone; /* finishing, and dead: its number may be that of another process */
    sj_arena_view view;
    sj_thread_drain **threads; /* by slot */
    uint64_t next_flush_ns;
    uint64_t flushed_ticks;      /* what happened before is in blocks */
    uint64_t ended_ticks;        /* when its end was seen; 0: it runs */
    uint64_t next_look_ns;       /* for ended threads and the open chunks */
    uint64_t next_end_look_ns;   /* for ended threads only, while slots are short */
    uint64_t seen_slot_requests; /* at the last one */
    uint32_t thread_count;       /* elements of `threads` that are there */
    bool is_replaced;            /* by another program in the same process, which has joined */
    bool was_seen;               /* in its memory (other_program.h) */
    bool has_executed;           /* a program that has not joined */
    uint64_t next_watch_ns;      /* for whether threads are on the processor */
    sj_thread_times *times;      /* NULL: that is not looked at */
    sj_call_timing *timing;      /* NULL: all calls are timed, whatever a policy says */
    bool is_read;                /* to its end, and its arena is gone */
    sj_process_end end;          /* as far as its end is known */
} sj_process_drain;

/* Takes `tracked` over if it succeeds. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_process_drain_new(sj_drain_shared *shared, uint64_t number,
                                             sj_tracked_process *tracked, const char *arena_name,
                                             sj_process_drain **process);
void sj_process_drain_free(sj_process_drain *process);

/* Writes the path of an arena, of at most PATH_MAX bytes. */
void sj_process_drain_name_arena(const sj_drain_shared *shared, const char *arena_name, char *path);

/* Drops what is known of the threads, after a failure: those that are read from then on begin at
 * the cursors of their slots. */
void sj_process_drain_restart(sj_process_drain *process);

/* sj_process_drain_poll reads what is ready and adds the number of records to `*records`.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns,
                                              uint64_t *records);

/* sj_process_drain_flush cuts blocks of what its threads have. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_process_drain_flush(sj_process_drain *process);

/* sj_process_drain_catch_up reads all that is written so far, open chunks included, and cuts
 * blocks of it. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_process_drain_catch_up(sj_process_drain *process, uint64_t now_ns);

/* sj_process_drain_set_policy makes its threads obey the policy of the drain, and announces them
 * again when `announce`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_process_drain_set_policy(sj_process_drain *process, bool announce);

/* sj_process_drain_finish reads the remainder, ends all streams and reports the end to the
 * registry. `is_gone`: the process is dead; otherwise it runs on without a drain. SJ_ENOMEM: call
 * it again after sj_process_drain_restart. */
SJ_MUST_CHECK sj_status sj_process_drain_finish(sj_process_drain *process, bool is_gone);

/* sj_process_drain_add_counters adds the figures of the threads that still run. */
void sj_process_drain_add_counters(const sj_process_drain *process, sj_drain_counters *counters);

#endif
