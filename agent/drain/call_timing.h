/* Call timing: of which functions of a process calls are counted rather than timed, decided by what
 * their timed calls last (`calls.clock` of the policy). The probes read it in the arena. The
 * drain's thread only.
 *
 * A function is counted when 512 of its calls came within a second and lasted at most
 * SJ_SHORT_CALL_NS on average; its timed calls go on to say how long they last. It is timed again
 * when they last twice as long, or when calls that nobody timed may have lasted SJ_LATE_CALL_NS or
 * more twice in a row, as once is mostly the thread being interrupted; then 64 short calls are
 * enough. Functions that a rule of the policy asks about are never counted. */
#ifndef SJ_AGENT_DRAIN_CALL_TIMING_H
#define SJ_AGENT_DRAIN_CALL_TIMING_H

#include "agent/abi/record.h"
#include "agent/drain/arena_view.h"

struct sj_function_rules;

enum { SJ_SHORT_CALL_NS = 2000, SJ_LATE_CALL_NS = 100000 };

typedef struct sj_timed_function {
    double mean_ticks;      /* of its timed calls, while it is counted */
    uint64_t ticks;         /* sum, of the calls of this window */
    uint64_t since48;       /* when the window began */
    uint32_t suspect_since; /* stretch in which its calls may have been long; 0: none */
    uint32_t calls : 31;    /* of the window; while it is counted: timed ones */
    uint32_t is_counted : 1;
} sj_timed_function;

typedef struct sj_call_timing {
    uint8_t *counted;                      /* borrowed, SJ_SHORT_FUNCTIONS bytes */
    const struct sj_function_rules *rules; /* borrowed, may be NULL */
    bool is_off;                           /* all functions are timed */
    double probe_ticks;                    /* of what a timed call lasts, spent in its own probes */
    double short_ticks;
    uint64_t late_ticks;
    uint64_t second_ticks;
    uint32_t suspects; /* functions whose `suspect_since` is set */
    uint32_t stretch;  /* number of the last stretch that nobody timed */
    sj_timed_function functions[SJ_SHORT_FUNCTIONS];
} sj_call_timing;

/* sj_call_timing_new decides for the arena of `view`, which outlives it; a timed call lasts
 * `probe_ticks` longer than it would without its clocks. NULL: no memory, or the arena is of an
 * agent that counts no calls. sj_call_timing_free, of NULL too, leaves all functions
 * timed. */
sj_call_timing *sj_call_timing_new(const sj_arena_view *view, double ns_per_tick,
                                   double probe_ticks);
void sj_call_timing_free(sj_call_timing *timing);

/* sj_call_timing_set_rules makes other rules hold: functions that they ask about are timed from now
 * on; unless `counts`, all are. */
void sj_call_timing_set_rules(sj_call_timing *timing, const struct sj_function_rules *rules,
                              bool counts);

/* sj_call_timing_add takes what a call has lasted that was timed at both ends, the latter at
 * `end48`. */
void sj_call_timing_add(sj_call_timing *timing, uint32_t function, uint64_t ticks, uint64_t end48);

/* Of calls in a stretch of time that nobody timed: sj_call_timing_late says that they may have
 * lasted SJ_LATE_CALL_NS, sj_call_timing_on_time that they have not. `stretch`: its number, not 0.
 */
void sj_call_timing_late(sj_call_timing *timing, uint32_t function, uint32_t stretch);
void sj_call_timing_on_time(sj_call_timing *timing, uint32_t function);

/* sj_call_timing_mean is what a call of a function lasts on average without its clocks, in ticks;
 * negative: that is not known. */
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
