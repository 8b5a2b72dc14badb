/* CPU times of a process's threads: the counters of the kernel's scheduler, read from outside. Also
 * the numbers and bytes of their allocations and frees, if the agent counts these
 * (agent/abi/arena.h). All are sent as reports of the monitor "threads", kind "times":
 *
 *   {"cpu_ns": C, "ready_ns": R, "watched_ns": W,
 *    "steps": [[thread, before_ns, length_ns, cpu_ns, ready_ns,
 *               allocations, allocated_bytes, frees, freed_bytes], ...]}
 *
 * A step began `before_ns` before the report's time. In it the thread ran for `cpu_ns` and waited
 * for a processor for `ready_ns`; the rest of the time it waited for something else. The last four
 * numbers are missing if allocations are not counted. While a thread is watched, its steps follow
 * each other without gaps. A step in which it did nothing may be long. The sums cover all steps of
 * the process so far.
 *
 * The kernel updates the time of a running thread at its timer ticks. The time that a thread has
 * run since the last tick (4 ms at 250 Hz) is in the next step. Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_THREAD_TIMES_H
#define SJ_AGENT_DRAIN_THREAD_TIMES_H

#include "agent/abi/arena.h"
#include "agent/session/frame_writer.h"

#include <stdbool.h>
#include <sys/types.h>

/* Counters of a thread since its start. */
typedef struct sj_thread_counters {
    uint64_t cpu_ns, ready_ns;
    bool has_memory;
    uint64_t memory[SJ_SLOT_MEMORY];
} sj_thread_counters;

/* The state of a watched thread. A zeroed structure means that nothing is known. */
typedef struct sj_thread_clock {
    uint64_t from_ns; /* begin of its next step, CLOCK_MONOTONIC; 0: it was never read */
    uint64_t seen_ns; /* the thread was idle until this time */
    /* time of its steps so far that is neither CPU time nor a known wait for a processor */
    uint64_t rest_ns;
    sj_thread_counters counters;
} sj_thread_clock;

typedef struct sj_thread_step {
    uint64_t thread; /* number in the session */
    uint64_t from_ns, length_ns;
    sj_thread_counters used;
} sj_thread_step;

enum { SJ_THREAD_STEPS = 1024 };

typedef struct sj_thread_times {
    uint64_t cpu_ns, ready_ns, watched_ns; /* sums of all steps so far */
    uint32_t count;
    sj_thread_step steps[SJ_THREAD_STEPS]; /* not sent yet */
} sj_thread_times;

/* Reads the counters of a thread: its CPU time, and its time waiting for a processor. Returns
 * SJ_ENOTFOUND if the thread does not exist or the kernel does not count. */
SJ_MUST_CHECK sj_status sj_thread_times_read(pid_t pid, uint32_t tid, uint64_t *cpu_ns,
                                             uint64_t *ready_ns);

/* Adds the counters that a thread had at `now_ns` (CLOCK_MONOTONIC). If they are smaller than
 * before, they belong to another thread with the same tid: the time between is not reported.
 *
 * Returns true if there is no space for another step of any thread: call sj_thread_times_send. */
bool sj_thread_times_note(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread,
                          uint64_t now_ns, const sj_thread_counters *counters);

/* Ends the step of a thread that did nothing since its counters were last added. Returns true if
 * there is no space for another step of any thread: call sj_thread_times_send. */
bool sj_thread_times_rest(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread);

/* Reports the steps, if there are any, and removes them. Returns the errors of
 * sj_frame_writer_report except SJ_EFULL: a full spool drops the report and counts that. */
SJ_MUST_CHECK sj_status sj_thread_times_send(sj_thread_times *times, sj_frame_writer *writer,
                                             uint64_t process);

#endif
