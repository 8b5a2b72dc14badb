/* On and off the processor: what the kernel's scheduler counts of a process's threads, looked at
 * from outside; and what they allocate, where that is counted (arena.h). Sent as reports of the
 * monitor "threads", kind "times":
 *
 *   {"cpu_ns": C, "ready_ns": R, "watched_ns": W,
 *    "steps": [[thread, before_ns, length_ns, cpu_ns, ready_ns,
 *               allocations, allocated_bytes, frees, freed_bytes], ...]}
 *
 * A step began `before_ns` before the report's time. In it the thread ran for `cpu_ns` and waited
 * for a processor for `ready_ns`; for the rest it waited for something else. The last four are left
 * out where nobody counts. Steps of a thread
 * follow each other without a gap as long as it is looked at; one in which it did nothing may be
 * long. The sums are those of all steps of the process so far. The kernel counts the time of a
 * running thread at its timer ticks: what it has run since then (4 ms at 250 Hz) is in the next
 * step. Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_THREAD_TIMES_H
#define SJ_AGENT_DRAIN_THREAD_TIMES_H

#include "agent/abi/arena.h"
#include "agent/session/frame_writer.h"

#include <stdbool.h>
#include <sys/types.h>

/* What a thread has used so far. */
typedef struct sj_thread_counters {
    uint64_t cpu_ns, ready_ns;
    bool has_memory;
    uint64_t memory[SJ_SLOT_MEMORY];
} sj_thread_counters;

/* What is known of a thread; zeroed: nothing yet. */
typedef struct sj_thread_clock {
    uint64_t from_ns; /* where its next step begins, CLOCK_MONOTONIC; 0: it was never looked at */
    uint64_t seen_ns; /* it did nothing until then */
    uint64_t rest_ns; /* of its steps so far: neither ran nor was known to wait for a processor */
    sj_thread_counters counters;
} sj_thread_clock;

typedef struct sj_thread_step {
    uint64_t thread; /* number in the session */
    uint64_t from_ns, length_ns;
    sj_thread_counters used;
} sj_thread_step;

enum { SJ_THREAD_STEPS = 1024 };

typedef struct sj_thread_times {
    uint64_t cpu_ns, ready_ns, watched_ns; /* of all steps so far */
    uint32_t count;
    sj_thread_step steps[SJ_THREAD_STEPS]; /* not sent yet */
} sj_thread_times;

/* sj_thread_times_read reads a thread's counters: the time that it ran and the time that it waited
 * for a processor. SJ_ENOTFOUND: there is no such thread, or the kernel does not count. */
SJ_MUST_CHECK sj_status sj_thread_times_read(pid_t pid, uint32_t tid, uint64_t *cpu_ns,
                                             uint64_t *ready_ns);

/* sj_thread_times_note notes the counters that a thread had at `now_ns` (CLOCK_MONOTONIC). Counters
 * that are less than before are those of another thread with the same tid: what lies between is not
 * known. Returns true when there is no room for another step of any thread: it is time to send. */
bool sj_thread_times_note(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread,
                          uint64_t now_ns, const sj_thread_counters *counters);

/* sj_thread_times_rest ends the step of a thread that has done nothing since it was noted last;
 * likewise. */
bool sj_thread_times_rest(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread);

/* sj_thread_times_send reports the steps, if there are any, and forgets them. Errors of
 * sj_frame_writer_report but SJ_EFULL: a full spool drops them, counted there. */
SJ_MUST_CHECK sj_status sj_thread_times_send(sj_thread_times *times, sj_frame_writer *writer,
                                             uint64_t process);

#endif
