/* Call timing: decides for which functions of a process calls are counted instead of timed. The
 * decision depends on the duration of their timed calls (`calls.clock` of the policy). The probes
 * read it in the arena. Used by the drain's thread only.
 *
 * A function becomes counted if 512 of its calls came within a second and lasted at most
 * SJ_SHORT_CALL_NS on average. Some of its calls are still timed and show how long they last.
 *
 * It becomes timed again if its calls last more than 2 * SJ_SHORT_CALL_NS on average. It also
 * becomes timed again if untimed calls may have lasted SJ_LATE_CALL_NS or more in two different
 * stretches, with no shorter call in between. One stretch is not enough, because the usual cause is
 * that the thread was interrupted. After that, 64 short calls within a second suffice to make the
 * function counted again. Functions that a rule of the policy names are never counted. */
#ifndef SJ_AGENT_DRAIN_CALL_TIMING_H
#define SJ_AGENT_DRAIN_CALL_TIMING_H

#include "agent/abi/record.h"
#include "agent/drain/arena_view.h"

struct sj_function_rules;

enum { SJ_SHORT_CALL_NS = 2000, SJ_LATE_CALL_NS = 100000 };

typedef struct sj_timed_function {
    double mean_ticks; /* mean duration of its timed calls, while the function is counted */
    uint64_t ticks;    /* total duration of the calls of this window */
    uint64_t since48;  /* when the window began */
    /* number of the stretch without timed records in which its calls may have been long; 0: none */
    uint32_t suspect_since;
    uint32_t calls : 31; /* calls of the window; while the function is counted: timed calls */
    uint32_t is_counted : 1;
} sj_timed_function;

typedef struct sj_call_timing {
    uint8_t *counted;                      /* borrowed, SJ_SHORT_FUNCTIONS bytes */
    const struct sj_function_rules *rules; /* borrowed, may be NULL */
    bool is_off;                           /* all functions are timed */
    double probe_ticks; /* part of a timed call's duration that its own probes take */
    double short_ticks;
    uint64_t late_ticks;
    uint64_t second_ticks;
    uint32_t suspects; /* number of functions whose `suspect_since` is set */
    uint32_t stretch;  /* number of the last stretch without timed records */
    sj_timed_function functions[SJ_SHORT_FUNCTIONS];
} sj_call_timing;

/* Creates the call timing for the arena of `view`, which must outlive it. `probe_ticks` is the time
 * that the clock readings add to a timed call. Returns NULL if out of memory, or if the arena's
 * agent does not count calls.
 *
 * sj_call_timing_free makes all functions timed. It accepts NULL. */
sj_call_timing *sj_call_timing_new(const sj_arena_view *view, double ns_per_tick,
                                   double probe_ticks);
void sj_call_timing_free(sj_call_timing *timing);

/* Changes the rules. Functions that they name are timed from now on. If `counts` is false, all
 * functions are timed. */
void sj_call_timing_set_rules(sj_call_timing *timing, const struct sj_function_rules *rules,
                              bool counts);

/* Adds the duration of a call whose entry and exit were timed. `end48` is the time of the exit. */
void sj_call_timing_add(sj_call_timing *timing, uint32_t function, uint64_t ticks, uint64_t end48);

/* Report a call in a stretch of time without timed records. sj_call_timing_late: the call may have
 * lasted SJ_LATE_CALL_NS or more. sj_call_timing_on_time: it did not. `stretch` is the number of
 * the stretch, not 0. */
void sj_call_timing_late(sj_call_timing *timing, uint32_t function, uint32_t stretch);
void sj_call_timing_on_time(sj_call_timing *timing, uint32_t function);

/* Returns the mean duration of a function's calls in ticks, without their clock readings. Negative
 * if it is unknown. */
static inline double sj_call_timing_mean(const sj_call_timing *timing, uint32_t function)
{
    if (timing == NULL || function >= SJ_SHORT_FUNCTIONS ||
        timing->functions[function].mean_ticks <= 0) {
        return -1;
    }
    const double net = timing->functions[function].mean_ticks - timing->probe_ticks;
    return net > 0 ? net : 0;
}

#endif
