/* Design notes
 *
 * The times for hooking, starting and watching are measured parts of the program's CPU time. The
 * rest is, for each pair of probes, the probes' time and the program's own time.
 *
 * A pair of probes costs about as much as a pair measured in a loop. The program's own time for
 * each pair is usually some nanoseconds. This file chooses the likeliest way to split the rest. If
 * it assumed the measured cost, a small error of that cost would become a large error of the factor
 * where probes take most of the time.
 *
 * The constants were measured on programs of Debian (tests/bench/cost_line.py). */
#include "agent/recording/recording_cost.h"

#include <math.h>

/* Relative deviation of a pair's cost from the measured cost. Then the program's own time for each
 * pair in ns: its median, and its deviation as the logarithm of a factor. */
static const double price_error = 0.15;
static const double own_ns = 13;
static const double own_error = 0.6;

/* The costs that are tried, relative to the measured cost. */
static const double least_price = 0.4;
static const double most_price = 2.5;
static const double price_step = 0.01;

static const double most_added_share = 0.97;

/* If watching takes more than this share, the factor is a minimum: monitors of freed memory do not
 * measure the page faults on pages that they guard. */
static const double watch_share_limit = 0.02;

uint64_t sj_recording_cost_cpu_ns(const sj_recording_cost *cost)
{
    return cost->probe_cpu_ns + cost->hook_cpu_ns + cost->start_cpu_ns + cost->watch_cpu_ns;
}

static double square(double number)
{
    return number * number;
}

/* Returns the negative log-likelihood, up to a factor, that a pair of probes costs `relative_cost`
 * times the measured cost. */
static double unlikelihood(double relative_cost, double pair_ns, double measured_ns)
{
    const double own = pair_ns - relative_cost * measured_ns;
    return own > 0
               ? square((relative_cost - 1) / price_error) + square(log(own / own_ns) / own_error)
               : HUGE_VAL;
}

/* The likeliest relative cost, and the range that contains it with a probability of two thirds. */
typedef struct price_range {
    double best, least, most;
} price_range;

static price_range find_price(double pair_ns, double measured_ns)
{
    price_range found = {least_price, least_price, least_price};
    double least = HUGE_VAL;
    const int steps = (int)lround((most_price - least_price) / price_step);
    for (int step = 0; step <= steps; step++) {
        const double relative_cost = least_price + step * price_step;
        const double current = unlikelihood(relative_cost, pair_ns, measured_ns);
        found.best = current < least ? relative_cost : found.best;
        least = current < least ? current : least;
    }
    found.least = found.most = found.best;
    while (found.least > least_price &&
           unlikelihood(found.least - price_step, pair_ns, measured_ns) <= least + 1) {
        found.least -= price_step;
    }
    while (found.most < most_price &&
           unlikelihood(found.most + price_step, pair_ns, measured_ns) <= least + 1) {
        found.most += price_step;
    }
    return found;
}

void sj_recording_cost_settle(sj_recording_cost *cost)
{
    const uint64_t others_ns = cost->hook_cpu_ns + cost->start_cpu_ns + cost->watch_cpu_ns;
    const double left_ns = cost->cpu_ns > others_ns ? (double)(cost->cpu_ns - others_ns) : 0;
    if (cost->cpu_ns == 0 || cost->probe_pairs == 0) {
        return;
    }
    const double probes_ns = (double)cost->probe_cpu_ns;
    const price_range price =
        find_price(left_ns / (double)cost->probe_pairs, probes_ns / (double)cost->probe_pairs);
    cost->probe_cpu_ns = (uint64_t)fmin(price.best * probes_ns, left_ns);
    cost->least_probe_cpu_ns = (uint64_t)fmin(price.least * probes_ns, left_ns);
    cost->most_probe_cpu_ns = (uint64_t)fmin(price.most * probes_ns, left_ns);
}

static double factor_of(double all, double added)
{
    return added > most_added_share * all ? 1 / (1 - most_added_share) : all / (all - added);
}

double sj_recording_cost_times(const sj_recording_cost *cost, bool *at_least)
{
    const double all = (double)cost->cpu_ns;
    const double added = (double)sj_recording_cost_cpu_ns(cost);
    const bool is_known = cost->cpu_ns != 0 && added > 0;
    *at_least = is_known && (added > most_added_share * all ||
                             (double)cost->watch_cpu_ns > watch_share_limit * all);
    return is_known ? factor_of(all, added) : 0;
}

void sj_recording_cost_range(const sj_recording_cost *cost, double *least, double *most)
{
    const double all = (double)cost->cpu_ns;
    const double others = (double)(sj_recording_cost_cpu_ns(cost) - cost->probe_cpu_ns);
    *least = factor_of(all, others + (double)cost->least_probe_cpu_ns);
    *most = factor_of(all, others + (double)cost->most_probe_cpu_ns);
}
