#include "collector-server/cli/report_cost.h"

static const double SHOWN_RANGE = 1.2; /* a range with a smaller ratio is not shown */

const char *sj_format_time(uint64_t ns, sj_time_text *text)
{
    return sj_format_duration(ns < INT64_MAX ? (int64_t)ns : INT64_MAX, text->text);
}

/* Prints `times`, the CPU time of the recorded run divided by the CPU time of a run without
 * recording. Prints the range of that estimate if the range is wide. */
static void report_times(FILE *file, const sj_recording_cost *cost, double times, bool at_least)
{
    double least;
    double most;
    sj_recording_cost_range(cost, &least, &most);
    fprintf(file, ", %s %.1f times the CPU of a plain run", at_least ? "more than" : "about",
            times);
    if (!at_least && most > least * SHOWN_RANGE) {
        fprintf(file, " (%.1f to %.1f)", least, most);
    }
}

void sj_report_cost(FILE *file, const sj_recording_cost *cost)
{
    bool at_least;
    sj_time_text texts[5];
    const double times = sj_recording_cost_times(cost, &at_least);
    const uint64_t tracing_ns =
        cost->probe_cpu_ns + cost->hook_cpu_ns + cost->start_cpu_ns + cost->watch_cpu_ns;
    fprintf(file, "  cost       tracing took %s of CPU", sj_format_time(tracing_ns, &texts[0]));
    if (times > 0) {
        report_times(file, cost, times, at_least);
    }
    fprintf(file, ": %s in probes, %s hooking, %s starting",
            sj_format_time(cost->probe_cpu_ns, &texts[1]),
            sj_format_time(cost->hook_cpu_ns, &texts[2]),
            sj_format_time(cost->start_cpu_ns, &texts[3]));
    if (cost->watch_cpu_ns != 0) {
        fprintf(file, ", %s watching freed memory", sj_format_time(cost->watch_cpu_ns, &texts[4]));
    }
    fprintf(file, "; waits: %s for plans, %s for buffer space; recorder: %s of CPU\n",
            sj_format_time(cost->plan_wall_ns, &texts[0]),
            sj_format_time(cost->waited_ns, &texts[1]),
            sj_format_time(cost->recorder_cpu_ns, &texts[2]));
}
