/* The drain's state of one process: its arena, its threads, their assemblers and streams. Used by
 * the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_PROCESS_DRAIN_H
#define SJ_AGENT_DRAIN_PROCESS_DRAIN_H

#include "agent/drain/arena_view.h"
#include "agent/drain/call_timing.h"
#include "agent/drain/drain_context.h"
#include "agent/drain/thread_times.h"
#include "agent/drain/tracked_process.h"

#include <limits.h>

typedef struct sj_thread_drain sj_thread_drain;

typedef struct sj_process_drain {
    sj_drain_shared *shared;
    uint64_t number;
    sj_tracked_process tracked;
    sj_governed_process *governed; /* NULL: the governor does not have the process */
    /* the process was passed to the governor, which may have failed to add it */
    bool was_governed;
    sj_unhooked_set *freed;
    char arena_path[PATH_MAX];
    bool is_open;
    bool is_confined; /* the process uses seccomp: its agent makes no more system calls */
    bool is_bad;      /* the arena is invalid and is never read */
    bool is_finishing;
    bool is_gone; /* the drain finishes and the process is dead; its pid may be reused */
    sj_arena_view view;
    sj_thread_drain **threads; /* one for each slot; NULL: no thread of the slot is being read */
    uint64_t next_flush_ns;
    uint64_t flushed_ticks;      /* events before this time are in blocks */
    uint64_t ended_ticks;        /* when the end of the process was seen; 0: it runs */
    uint64_t next_check_ns;      /* next check of open chunks and ended threads */
    uint64_t next_end_check_ns;  /* next extra check of ended threads, while slots are short */
    uint64_t seen_slot_requests; /* slot requests at the last extra check */
    uint32_t thread_count;       /* number of elements of `threads` that are not NULL */
    bool is_replaced;       /* another program that joined has replaced this one in the process */
    bool was_seen;          /* its memory was seen to have the arena (other_program.h) */
    bool has_executed;      /* the process executed a program that did not join */
    uint64_t next_watch_ns; /* next reading of the threads' CPU times */
    sj_thread_times *times; /* NULL: CPU times are not read */
    sj_call_timing *timing; /* NULL: all calls are timed, independent of the policy */
    bool is_read;           /* the arena was read to its end and removed */
    sj_process_end end;     /* how the process ended, as far as it is known */
} sj_process_drain;

/* Creates the state of a process. Takes ownership of `tracked` if it succeeds. Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_process_drain_new(sj_drain_shared *shared, uint64_t number,
                                             sj_tracked_process *tracked, const char *arena_name,
                                             sj_process_drain **process);
void sj_process_drain_free(sj_process_drain *process);

/* Writes the path of an arena, at most PATH_MAX bytes. */
void sj_process_drain_name_arena(const sj_drain_shared *shared, const char *arena_name, char *path);

/* Drops the state of all threads after a failure. The threads are then read again from the cursors
 * of their slots. */
void sj_process_drain_restart(sj_process_drain *process);

/* Reads the available records and adds their number to `*records`. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns,
                                              uint64_t *records);

/* Writes what the assemblers of the threads hold into blocks. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_process_drain_flush(sj_process_drain *process);

/* Reads everything written so far, including open chunks, and writes it into blocks. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_process_drain_catch_up(sj_process_drain *process, uint64_t now_ns);

/* Applies the drain's policy to the threads. If `announce` is true, sends their frames again.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_process_drain_set_policy(sj_process_drain *process, bool announce);

/* Reads the rest of the arena, ends all streams and reports the end to the registry. `is_gone`: the
 * process is dead. Otherwise it continues without a drain.
 *
 * After SJ_ENOMEM, call sj_process_drain_restart and then this function again. */
SJ_MUST_CHECK sj_status sj_process_drain_finish(sj_process_drain *process, bool is_gone);

/* Adds the counters of the threads that still run. */
void sj_process_drain_add_counters(const sj_process_drain *process, sj_drain_counters *counters);

#endif
