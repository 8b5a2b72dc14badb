/* What recording cost the program: the parts that a summary names, apart from each other. */
#ifndef SJ_AGENT_RECORDING_RECORDING_COST_H
#define SJ_AGENT_RECORDING_RECORDING_COST_H

#include <stdbool.h>
#include <stdint.h>

/* What is measured, or estimated where it says so. */
typedef struct sj_recording_cost {
    uint64_t cpu_ns;          /* of the program, recording included; 0: not known (attached) */
    uint64_t probe_cpu_ns;    /* of it in probes: their number times what one costs (estimate) */
    uint64_t hook_cpu_ns;     /* of it in hooking functions, and in rewriting Java classes */
    uint64_t start_cpu_ns;    /* of it in starting agents, hooking excepted (in part an estimate) */
    uint64_t plan_wall_ns;    /* that the program waited for plans at its start and at dlopen */
    uint64_t waited_ns;       /* that its threads waited for room in the buffer, summed up */
    uint64_t recorder_cpu_ns; /* of the recorder, on other cores where there are some */
    bool watches_memory;      /* what watching freed memory cost is in none of the parts */
} sj_recording_cost;

/* sj_recording_cost_cpu_ns returns the CPU time that recording added to the program. */
uint64_t sj_recording_cost_cpu_ns(const sj_recording_cost *cost);

/* sj_recording_cost_limit keeps the estimate of the probes within the CPU time that the program
 * had, as far as that is known: the other parts are measured. */
void sj_recording_cost_limit(sj_recording_cost *cost);

/* sj_recording_cost_times estimates how many times the CPU time of an unrecorded run the program
 * took. Beyond three quarters of the time the rest is smaller than the estimate's error: then
 * `*at_least` is set and the least is returned. 0: not known, also where freed memory was watched.
 */
double sj_recording_cost_times(const sj_recording_cost *cost, bool *at_least);

#endif
