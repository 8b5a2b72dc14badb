/* The governor keeps the overhead budget: it knows what calls cost, estimates what recording adds
 * to the CPU time of each process, and sets the functions free that are called most until the sum
 * is inside of the budget. They are hooked again later, when what was saved pays for the attempt;
 * each time that fails the pause doubles. Every decision is sent as a frame.
 *
 * What is spent above the budget, at the start or in a burst, is saved later; what was saved can be
 * spent later only up to a second's worth. */
#ifndef SJ_AGENT_CONTROL_GOVERNOR_H
#define SJ_AGENT_CONTROL_GOVERNOR_H

#include "agent/control/emitter.h"
#include "agent/control/freed.h"

#include <sys/types.h>

typedef struct sj_governor sj_governor;

/* Calls per function of one process, counted by the drain, read by the governor. */
typedef struct sj_governed sj_governed;

enum { SJ_GOVERNED_FUNCTIONS = 1 << 22 }; /* ids from here on are not governed */

typedef struct sj_governor_options {
    sj_emitter *emitter; /* borrowed */
    double call_ns;      /* what one call costs its thread */
} sj_governor_options;

typedef struct sj_governor_counters {
    uint64_t unhooked; /* decisions */
    uint64_t rehooked;
    uint64_t failures; /* of toggling */
    uint64_t stopped_ns;
    double overhead_percent; /* estimated over the recording, all processes */
} sj_governor_counters;

/* sj_governor_start starts the governor's thread, which rests at first. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_governor_start(const sj_governor_options *options,
                                          sj_governor **governor, sj_error *error);
void sj_governor_stop(sj_governor *governor); /* NULL is allowed */

/* sj_governor_rest makes the governor leave all processes alone, so that another thread can trace
 * them: what it is doing is finished when this returns. Blocking: milliseconds. Any thread. */
void sj_governor_rest(sj_governor *governor);

/* sj_governor_resume sets a budget, forgets what was spent and whom it had set free (all functions
 * that are to be recorded are hooked again), and ends the rest. Any thread. */
void sj_governor_resume(sj_governor *governor, double budget_percent);

/* sj_governor_add takes a process under control, sj_governor_remove lets it go; the drain's thread.
 * `freed` (borrowed) is told what is set free. A process that cannot be governed (SJ_ENOMEM) runs
 * on ungoverned. */
SJ_MUST_CHECK sj_status sj_governor_add(sj_governor *governor, uint64_t process, pid_t pid,
                                        sj_freed *freed, sj_governed **governed);
void sj_governor_remove(sj_governor *governor, sj_governed *governed);

/* sj_governed_calls is the array that the drain adds to: [SJ_GOVERNED_FUNCTIONS]. */
uint64_t *sj_governed_calls(sj_governed *governed);

/* sj_governed_count tells that so many calls were added, of functions up to `highest`; wakes the
 * governor when they are worth a look. The drain's thread. */
void sj_governed_count(sj_governed *governed, uint64_t calls, uint32_t highest);

void sj_governor_get_counters(sj_governor *governor, sj_governor_counters *counters);

#endif
