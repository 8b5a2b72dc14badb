#include "agent/drain/call_timing.h"

#include "agent/drain/policy_judge.h"

#include <stdlib.h>

enum {
    CALLS_OF_A_WINDOW = 512,
    CALLS_AFTER_A_LATE = 64, /* window size after a call that may have been long */
    SEED_WEIGHT = 16,        /* weight of the previous window's mean, in calls */
    MEMORY_CALLS = 1024      /* the mean covers about this many of the last timed calls */
};

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)
#define NS_PER_SECOND 1e9

sj_call_timing *sj_call_timing_new(const sj_arena_view *view, double ns_per_tick,
                                   double probe_ticks)
{
    uint8_t *counted = sj_arena_view_counted(view);
    sj_call_timing *timing = counted != NULL ? calloc(1, sizeof(*timing)) : NULL;
    if (timing == NULL) {
        return NULL;
    }
    timing->counted = counted;
    timing->probe_ticks = probe_ticks;
    timing->short_ticks = SJ_SHORT_CALL_NS / ns_per_tick;
    timing->late_ticks = (uint64_t)(SJ_LATE_CALL_NS / ns_per_tick);
    timing->second_ticks = (uint64_t)(NS_PER_SECOND / ns_per_tick);
    return timing;
}

static void set_counted(sj_call_timing *timing, uint32_t function, bool is_counted)
{
    timing->functions[function].is_counted = is_counted;
    __atomic_store_n(&timing->counted[function], is_counted ? 1 : 0, __ATOMIC_RELAXED);
}

void sj_call_timing_free(sj_call_timing *timing)
{
    for (uint32_t i = 0; timing != NULL && i < SJ_SHORT_FUNCTIONS; i++) {
        if (timing->functions[i].is_counted) {
            set_counted(timing, i, false);
        }
    }
    free(timing);
}

static void set_suspect(sj_call_timing *timing, uint32_t function, uint32_t since)
{
    sj_timed_function *timed = &timing->functions[function];
    timing->suspects += (uint32_t)(since != 0) - (uint32_t)(timed->suspect_since != 0);
    timed->suspect_since = since;
}

static void time_again(sj_call_timing *timing, uint32_t function)
{
    timing->functions[function].calls = 0;
    set_suspect(timing, function, 0);
    set_counted(timing, function, false);
}

static bool needs_clock(const sj_call_timing *timing, uint32_t function)
{
    return timing->is_off || sj_policy_judge_needs_clock(timing->rules, function);
}

void sj_call_timing_set_rules(sj_call_timing *timing, const sj_function_rules *rules, bool counts)
{
    timing->rules = rules;
    timing->is_off = !counts;
    for (uint32_t i = 0; i < SJ_SHORT_FUNCTIONS; i++) {
        if (timing->functions[i].is_counted && needs_clock(timing, i)) {
            time_again(timing, i);
        }
    }
}

static void end_window(sj_call_timing *timing, uint32_t function, uint64_t end48)
{
    sj_timed_function *timed = &timing->functions[function];
    const double mean = (double)timed->ticks / timed->calls;
    const bool are_many = ((end48 - timed->since48) & TICKS48_MASK) <= timing->second_ticks;
    timed->calls = 0;
    if (mean <= timing->short_ticks && are_many && !needs_clock(timing, function)) {
        timed->mean_ticks = mean;
        timed->calls = SEED_WEIGHT;
        set_counted(timing, function, true);
    } else {
        timed->mean_ticks = 0;
    }
}

void sj_call_timing_add(sj_call_timing *timing, uint32_t function, uint64_t ticks, uint64_t end48)
{
    if (function >= SJ_SHORT_FUNCTIONS) {
        return;
    }
    sj_timed_function *timed = &timing->functions[function];
    if (timed->is_counted) {
        const double most = timing->short_ticks + 4 * timed->mean_ticks;
        timed->calls += timed->calls < MEMORY_CALLS;
        timed->mean_ticks +=
            (((double)ticks < most ? (double)ticks : most) - timed->mean_ticks) / timed->calls;
        if (timed->mean_ticks > 2 * timing->short_ticks) {
            time_again(timing, function);
        }
        return;
    }
    if (timed->calls == 0) {
        timed->ticks = 0;
        timed->since48 = end48;
    }
    timed->ticks += ticks;
    if (++timed->calls == (timed->mean_ticks > 0 ? CALLS_AFTER_A_LATE : CALLS_OF_A_WINDOW)) {
        end_window(timing, function, end48);
    }
}

void sj_call_timing_late(sj_call_timing *timing, uint32_t function, uint32_t stretch)
{
    if (function >= SJ_SHORT_FUNCTIONS || !timing->functions[function].is_counted) {
        return;
    }
    const uint32_t since = timing->functions[function].suspect_since;
    if (since == 0) {
        set_suspect(timing, function, stretch);
    } else if (since != stretch) {
        time_again(timing, function);
    }
}

void sj_call_timing_on_time(sj_call_timing *timing, uint32_t function)
{
    if (function < SJ_SHORT_FUNCTIONS) {
        set_suspect(timing, function, 0);
    }
}
