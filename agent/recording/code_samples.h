/* Samples of the files whose code the recorded programs run. They show where time passes that the
 * recorded calls do not explain, for example in a library that is not recorded.
 *
 * A thread of the recorder reads the program counter of running threads from outside, by ptrace:
 * 100 times a second at first, later 20 times. It leaves a thread alone that has waited since the
 * last look, so that it interrupts no waits. While many calls are recorded it stops no thread, and
 * counts the time as explained.
 * The samples are sent once, as a report of the monitor "code", kind "samples":
 *
 *   {"sampled_ns": S, "generated_ns": G, "other_ns": O, "files": [{"path": "...", "ns": N}, ...]}
 *
 * S is the CPU time that the samples stand for, with the explained time. G is its part in code that
 * is in no file. O is its part in files for which there was no space. */
#ifndef SJ_AGENT_RECORDING_CODE_SAMPLES_H
#define SJ_AGENT_RECORDING_CODE_SAMPLES_H

#include "agent/drain/drain.h"
#include "agent/registry/registry.h"
#include "agent/session/frame_writer.h"

typedef struct sj_code_samples sj_code_samples;

/* Starts the thread. The arguments are borrowed until sj_code_samples_stop. Returns NULL if there
 * can be no samples: the machine does not allow them without harm, or there is no memory. */
sj_code_samples *sj_code_samples_start(sj_frame_writer *writer, sj_registry *registry,
                                       sj_drain *drain);

/* Ends the thread, sends the report if there are samples, and frees `samples`. NULL is allowed.
 * Blocks until a sample that is being taken is finished. */
void sj_code_samples_stop(sj_code_samples *samples);

#endif
