/* What recording cost the program: the parts that a summary names, apart from each other. */
#ifndef SJ_AGENT_RECORDING_RECORDING_COST_H
#define SJ_AGENT_RECORDING_RECORDING_COST_H

#include <stdbool.h>
#include <stdint.h>

/* What is measured, or estimated where it says so. */
typedef struct sj_recording_cost {
    uint64_t cpu_ns;       /* of the program, recording included; 0: not known (attached) */
    uint64_t probe_cpu_ns; /* of it in probes: their number times what one costs (estimate) */
    uint64_t least_probe_cpu_ns, most_probe_cpu_ns; /* between which that lies two times of three */
    uint64_t probe_pairs;     /* how many there were, as pairs of an entry and an exit */
    uint64_t hook_cpu_ns;     /* of it in hooking functions, and in rewriting Java classes */
    uint64_t start_cpu_ns;    /* of it in starting agents, hooking excepted (in part an estimate) */
    uint64_t watch_cpu_ns;    /* of it in watching freed memory, as its monitors measured it */
    uint64_t plan_wall_ns;    /* that the program waited for plans at its start and at dlopen */
    uint64_t waited_ns;       /* that its threads waited for room in the buffer, summed up */
    uint64_t recorder_cpu_ns; /* of the recorder, on other cores where there are some */
} sj_recording_cost;

/* sj_recording_cost_cpu_ns returns the CPU time that recording added to the program. */
uint64_t sj_recording_cost_cpu_ns(const sj_recording_cost *cost);

/* sj_recording_cost_settle replaces `probe_cpu_ns`, the number of pairs times a measured price, by
 * what is likeliest, given the CPU time that the program had, and fills in its range; nothing, if
 * that time is not known. */
void sj_recording_cost_settle(sj_recording_cost *cost);

/* sj_recording_cost_times estimates how many times the CPU time of an unrecorded run the program
 * took. Where less than 3 % of the time remains, it is smaller than the error of what was measured:
 * then `*at_least` is set and the least is returned; it is set, too, where freed memory was watched
 * for more than 2 % of the time, as that costs more than its monitors can measure. 0: not known. */
double sj_recording_cost_times(const sj_recording_cost *cost, bool *at_least);

/* sj_recording_cost_range says between which factors that of sj_recording_cost_times lies, two
 * times of three, as far as the probes decide it; of a settled cost whose factor is known. */
void sj_recording_cost_range(const sj_recording_cost *cost, double *least, double *most);

#endif
