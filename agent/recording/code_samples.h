/* Samples which files' code the recorded programs run. The samples show where time passes that the
 * recorded calls do not explain, for example in a library that is not recorded.
 *
 * A thread of the recorder reads the program counter of running threads from outside, by ptrace:
 * 100 times a second for the first second of CPU time, then 20 times a second. It does not stop a
 * thread that has waited since the previous round, so that it interrupts hardly any waits. A
 * wait that it has interrupted is repeated (agent/ptrace/waits.h). While many calls are recorded,
 * it stops no thread and counts the time as explained.
 *
 * The samples are sent once, as a report of the monitor "code", kind "samples":
 *
 *   {"sampled_ns": S, "generated_ns": G, "other_ns": O, "files": [{"path": "...", "ns": N}, ...]}
 *
 * S is the CPU time that the samples stand for, with the explained time. G is its part in generated
 * code, which is not in a file. O is its part in files beyond the first 64, and in
 * files whose path is not UTF-8. */
#ifndef SJ_AGENT_RECORDING_CODE_SAMPLES_H
#define SJ_AGENT_RECORDING_CODE_SAMPLES_H

#include "agent/drain/drain.h"
#include "agent/registry/registry.h"
#include "agent/session/frame_writer.h"

typedef struct sj_code_samples sj_code_samples;

/* Starts the thread. The arguments are borrowed until sj_code_samples_stop. Returns NULL, without
 * an error, if interrupted waits cannot be repeated on this machine (sj_waits_are_repeatable), or
 * if out of memory. */
sj_code_samples *sj_code_samples_start(sj_frame_writer *writer, sj_registry *registry,
                                       sj_drain *drain);

/* Ends the thread, sends the report if there are samples, and frees `samples`. NULL is allowed.
 * Blocks until the current round has ended. */
void sj_code_samples_stop(sj_code_samples *samples);

#endif
