/* Overhead governor: keeps the overhead budget. It knows the cost of a call, and estimates how much
 * CPU time recording adds to each process. It unhooks the most called functions until the sum is
 * within the budget. It hooks them again later, when the balance allows; each failure doubles the
 * pause. Every decision is sent as a frame.
 *
 * If recording exceeds the budget at the start or in a burst, it costs less than the budget later.
 * Savings can be spent later only up to a second's worth. */
#ifndef SJ_AGENT_MODES_OVERHEAD_GOVERNOR_H
#define SJ_AGENT_MODES_OVERHEAD_GOVERNOR_H

#include "agent/livepatch/toggle.h"
#include "agent/session/frame_writer.h"

#include <sys/types.h>
#include <time.h>

typedef struct sj_overhead_governor sj_overhead_governor;

/* Calls per function of one process, counted by the drain, read by the governor. */
typedef struct sj_governed_process sj_governed_process;

/* Functions with this id or a higher one are not governed. */
enum { SJ_GOVERNED_PROCESS_FUNCTIONS = 1 << 22 };

/* Cost of a probe without a clock, relative to one with a clock: an estimate. Lua costs 27.6 ns a
 * call instead of 46.1 when four of five calls are counted (tests/bench/RESULTS.md). So a counted
 * call costs half as much as a timed one. */
#define SJ_UNTIMED_PRICE 0.5

/* Functions whose recording is changed because of their cost. */
typedef struct sj_method_change {
    uint64_t process;
    pid_t pid;
    bool on;
    const sj_governed_process *governed;
    sj_unhooked_set *freed;
    /* The callee sorts the array: `count` functions that are not methods of a runtime, then `muted`
     * methods. The probes of muted methods stay but record nothing. */
    uint32_t *functions;
    size_t count;
    size_t muted;
} sj_method_change;

typedef struct sj_overhead_governor_options {
    sj_frame_writer *writer; /* borrowed */
    double call_ns;          /* cost of a timed call for its thread */
    bool threadless;         /* the owner calls sj_overhead_governor_check */
    /* Turns the recording of the runtimes' methods among the functions on or off. `*cost_ns` is the
     * CPU time that the change cost the process. Called before hook_functions. If that fails,
     * called again to undo the change. NULL: no runtimes. */
    sj_status (*hook_methods)(void *context, sj_method_change *change, uint64_t *cost_ns,
                              sj_error *error);
    void *context;
    /* NULL in the product; tests replace them. */
    uint64_t (*clock_ns)(clockid_t clock); /* like clock_gettime; 0: the process is gone */
    sj_status (*hook_functions)(pid_t pid, const uint32_t *functions, size_t count, bool on,
                                sj_unhooked_set *freed, sj_hook_functions_report *report,
                                sj_error *error); /* sj_hook_functions */
} sj_overhead_governor_options;

typedef struct sj_overhead_governor_counters {
    uint64_t unhooked; /* number of decisions */
    uint64_t rehooked;
    uint64_t failures; /* changes that failed */
    uint64_t stopped_ns;
    double overhead_percent; /* estimated over the recording, all processes */
} sj_overhead_governor_counters;

/* Starts the governor's thread. The governor is suspended until sj_overhead_governor_resume.
 * Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_overhead_governor_start(const sj_overhead_governor_options *options,
                                                   sj_overhead_governor **governor,
                                                   sj_error *error);
void sj_overhead_governor_stop(sj_overhead_governor *governor); /* NULL is allowed */

/* Does one check, like the governor's thread: measures all processes, hooks and unhooks functions.
 * Returns true if it made a decision. Thread-safe. */
bool sj_overhead_governor_check(sj_overhead_governor *governor);

/* Suspends the governor, so that another thread can trace the processes. Returns false if its
 * current work is not finished after `limit_ns`. The governor then finishes that work and stays
 * suspended, and the caller may try again. Blocks for milliseconds, or seconds while methods of a
 * runtime are changed. Thread-safe. */
SJ_MUST_CHECK bool sj_overhead_governor_suspend(sj_overhead_governor *governor, uint64_t limit_ns);

/* Sets the budget. Ends the suspension if the budget is greater than 0; else the governor is
 * suspended. If the governor was suspended, discards all measurements, and treats all functions as
 * hooked. Thread-safe. */
void sj_overhead_governor_resume(sj_overhead_governor *governor, double budget_percent);

/* sj_overhead_governor_add starts governing a process, sj_overhead_governor_remove ends it. Only
 * the drain's thread calls them. `freed` (shared) records unhooked functions. On SJ_ENOMEM, the
 * process is not governed. Neither function waits for functions that are being changed. */
SJ_MUST_CHECK sj_status sj_overhead_governor_add(sj_overhead_governor *governor, uint64_t process,
                                                 pid_t pid, sj_unhooked_set *freed,
                                                 sj_governed_process **governed);
void sj_overhead_governor_remove(sj_overhead_governor *governor, sj_governed_process *governed);

/* Returns the array that the drain adds calls to: [SJ_GOVERNED_PROCESS_FUNCTIONS]. */
uint64_t *sj_governed_process_calls(sj_governed_process *governed);
/* Returns the array for the untimed calls among these. */
uint64_t *sj_governed_process_untimed(sj_governed_process *governed);

/* True if the probes of a function that is being unhooked may stay, muted. Their cost then fits the
 * part of the budget for muted probes. */
bool sj_governed_process_is_rare(const sj_governed_process *governed, uint32_t function);

/* Notes calls that cost as much as `calls` timed calls; `highest` is the largest function id among
 * them. Wakes the governor if these calls need a check. Only the drain's thread calls this. */
void sj_governed_process_count(sj_governed_process *governed, double calls, uint32_t highest);

void sj_overhead_governor_get_counters(sj_overhead_governor *governor,
                                       sj_overhead_governor_counters *counters);

#endif
