#include "agent/recording/recording_cost.h"

static const double most_of_all = 0.75;

uint64_t sj_recording_cost_cpu_ns(const sj_recording_cost *cost)
{
    return cost->probe_cpu_ns + cost->hook_cpu_ns + cost->start_cpu_ns;
}

void sj_recording_cost_limit(sj_recording_cost *cost)
{
    const uint64_t measured_ns = cost->hook_cpu_ns + cost->start_cpu_ns;
    const uint64_t left_ns = cost->cpu_ns > measured_ns ? cost->cpu_ns - measured_ns : 0;
    if (cost->cpu_ns != 0 && cost->probe_cpu_ns > left_ns) {
        cost->probe_cpu_ns = left_ns;
    }
}

double sj_recording_cost_times(const sj_recording_cost *cost, bool *at_least)
{
    const double all = (double)cost->cpu_ns;
    const double added = (double)sj_recording_cost_cpu_ns(cost);
    *at_least = added > most_of_all * all;
    if (cost->cpu_ns == 0 || added <= 0 || cost->watches_memory) {
        *at_least = false;
        return 0;
    }
    return *at_least ? 1 / (1 - most_of_all) : all / (all - added);
}
