/* The governor keeps the overhead budget: it knows what calls cost, estimates what recording adds
 * to the CPU time of each process, and unhooks the functions that are called most until the sum
 * is inside of the budget. They are hooked again later, when what was saved pays for the attempt;
 * each time that fails the pause doubles. Every decision is sent as a frame.
 *
 * What is spent above the budget, at the start or in a burst, is saved later; what was saved can be
 * spent later only up to a second's worth. */
#ifndef SJ_AGENT_MODES_OVERHEAD_GOVERNOR_H
#define SJ_AGENT_MODES_OVERHEAD_GOVERNOR_H

#include "agent/livepatch/toggle.h"
#include "agent/session/frame_writer.h"

#include <sys/types.h>
#include <time.h>

typedef struct sj_overhead_governor sj_overhead_governor;

/* Calls per function of one process, counted by the drain, read by the governor. */
typedef struct sj_governed_process sj_governed_process;

enum { SJ_GOVERNED_PROCESS_FUNCTIONS = 1 << 22 }; /* ids from here on are not governed */

/* What a probe costs that reads no clock, beside one that does: an estimate. Lua costs 27.6 ns a
 * call instead of 46.1 when four of five calls are counted (tests/bench/RESULTS.md), which is 0.5
 * of each of them. */
#define SJ_UNTIMED_PRICE 0.5

/* Functions that are to be recorded, or not, for what they cost. */
typedef struct sj_method_change {
    uint64_t process;
    pid_t pid;
    bool on;
    const sj_governed_process *governed;
    sj_unhooked_set *freed;
    /* Sorted. Then those that are no methods of a runtime come first, `count` says how many, and
     * behind them `muted` methods that keep their probes, which record nothing. */
    uint32_t *functions;
    size_t count;
    size_t muted;
} sj_method_change;

typedef struct sj_overhead_governor_options {
    sj_frame_writer *writer; /* borrowed */
    double call_ns;          /* what one call costs its thread whose times are recorded */
    bool threadless;         /* the owner calls sj_overhead_governor_look */
    /* Has methods of runtimes among the functions recorded or not; `*cost_ns` is what that cost the
     * process. Called before hook_functions, and the other way round when that fails. NULL: there
     * are none. */
    sj_status (*hook_methods)(void *context, sj_method_change *change, uint64_t *cost_ns,
                              sj_error *error);
    void *context;
    /* NULL in the product; tests drive the governor by them. */
    uint64_t (*clock_ns)(clockid_t clock); /* clock_gettime; 0: the process is gone */
    sj_status (*hook_functions)(pid_t pid, const uint32_t *functions, size_t count, bool on,
                                sj_unhooked_set *freed, sj_hook_functions_report *report,
                                sj_error *error); /* sj_hook_functions */
} sj_overhead_governor_options;

typedef struct sj_overhead_governor_counters {
    uint64_t unhooked; /* decisions */
    uint64_t rehooked;
    uint64_t failures; /* of toggling */
    uint64_t stopped_ns;
    double overhead_percent; /* estimated over the recording, all processes */
} sj_overhead_governor_counters;

/* sj_overhead_governor_start starts the governor's thread, which rests at first. SJ_ENOMEM, SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_overhead_governor_start(const sj_overhead_governor_options *options,
                                                   sj_overhead_governor **governor,
                                                   sj_error *error);
void sj_overhead_governor_stop(sj_overhead_governor *governor); /* NULL is allowed */

/* sj_overhead_governor_look does what the governor's thread does at each turn: measures all
 * processes, hooks and unhooks functions. Returns whether it decided something. Any thread. */
bool sj_overhead_governor_look(sj_overhead_governor *governor);

/* sj_overhead_governor_suspend makes the governor leave all processes alone, so that another thread
 * can trace them. False: what it is doing is not finished after `limit_ns`, and this is to be
 * called again. Blocking: milliseconds, seconds while methods of a runtime are changed. Any thread.
 */
SJ_MUST_CHECK bool sj_overhead_governor_suspend(sj_overhead_governor *governor, uint64_t limit_ns);

/* sj_overhead_governor_resume sets a budget, forgets what was spent and which functions it had
 * unhooked (all functions that are to be recorded are hooked again), and ends the rest. Any thread.
 */
void sj_overhead_governor_resume(sj_overhead_governor *governor, double budget_percent);

/* sj_overhead_governor_add takes a process under control, sj_overhead_governor_remove lets it go;
 * the drain's thread. `freed` (shared) records what is unhooked. A process that cannot be governed
 * (SJ_ENOMEM) runs on ungoverned. Neither waits for functions that are being changed. */
SJ_MUST_CHECK sj_status sj_overhead_governor_add(sj_overhead_governor *governor, uint64_t process,
                                                 pid_t pid, sj_unhooked_set *freed,
                                                 sj_governed_process **governed);
void sj_overhead_governor_remove(sj_overhead_governor *governor, sj_governed_process *governed);

/* sj_governed_process_calls is the array that the drain adds to: [SJ_GOVERNED_PROCESS_FUNCTIONS].
 */
uint64_t *sj_governed_process_calls(sj_governed_process *governed);
/* sj_governed_process_untimed is the same for those of these calls that read no clock. */
uint64_t *sj_governed_process_untimed(sj_governed_process *governed);

/* sj_governed_process_is_rare returns whether probes of a function that is being unhooked may stay,
 * muted: what they cost then is within the part of the budget that is for that. */
bool sj_governed_process_is_rare(const sj_governed_process *governed, uint32_t function);

/* sj_governed_process_count says that calls were added that cost as much as `calls` timed ones, of
 * functions up to `highest`; wakes the governor when they are worth a look. The drain's thread. */
void sj_governed_process_count(sj_governed_process *governed, double calls, uint32_t highest);

void sj_overhead_governor_get_counters(sj_overhead_governor *governor,
                                       sj_overhead_governor_counters *counters);

#endif
