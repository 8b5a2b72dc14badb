/* The cost of recording for the program, split into the parts that a summary names. */
#ifndef SJ_AGENT_RECORDING_RECORDING_COST_H
#define SJ_AGENT_RECORDING_RECORDING_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Measured values, or estimates if the member says so. */
typedef struct sj_recording_cost {
    uint64_t cpu_ns; /* CPU time of the program, including recording; 0: unknown (attached) */
    /* part of cpu_ns in probes: the number of probes times the measured cost of one (estimate) */
    uint64_t probe_cpu_ns;
    /* the range that contains probe_cpu_ns with a probability of two thirds */
    uint64_t least_probe_cpu_ns, most_probe_cpu_ns;
    uint64_t probe_pairs; /* number of probes, as pairs of an entry and an exit */
    uint64_t hook_cpu_ns; /* part of cpu_ns in hooking functions and rewriting Java classes */
    /* part of cpu_ns in starting agents, without hooking (partly an estimate) */
    uint64_t start_cpu_ns;
    /* part of cpu_ns in watching freed memory, as the monitors of freed memory measured it */
    uint64_t watch_cpu_ns;
    uint64_t plan_wall_ns; /* time that the program waited for plans at its start and at dlopen */
    uint64_t waited_ns;    /* time that its threads waited for space in the buffer, total */
    uint64_t recorder_cpu_ns; /* CPU time of the recorder, on other cores if there are some */
} sj_recording_cost;

/* Returns the CPU time that recording added to the program. */
uint64_t sj_recording_cost_cpu_ns(const sj_recording_cost *cost);

/* Replaces `probe_cpu_ns`, which is the number of pairs times a measured cost, by the likeliest
 * value for the program's CPU time. Also writes its range. Does nothing if the program's CPU time
 * is unknown. */
void sj_recording_cost_settle(sj_recording_cost *cost);

/* Estimates the factor between the program's CPU time and the CPU time of an unrecorded run.
 * Returns 0 if it is unknown.
 *
 * Returns a minimum and sets `*at_least` if the program's own time seems to be less than 3 % of the
 * total. The errors of the measured parts are larger than that. Also sets `*at_least` if freed
 * memory was watched for more than 2 % of the time: watching costs more than its monitors can
 * measure. */
double sj_recording_cost_times(const sj_recording_cost *cost, bool *at_least);

/* Writes the range that contains the factor of sj_recording_cost_times with a probability of two
 * thirds, considering only the uncertainty of the probes. The cost must be settled and the factor
 * known. */
void sj_recording_cost_range(const sj_recording_cost *cost, double *least, double *most);

#endif
