/* Detaches from processes of a launched program that continue after its recording, such as
 * background servers and helpers. If the session reaches its maximum size, these are all processes
 * of the program. Used by the recording's thread only. */
#ifndef SJ_AGENT_RECORDING_LEFT_PROCESSES_H
#define SJ_AGENT_RECORDING_LEFT_PROCESSES_H

#include "agent/recording/pipeline_state.h"

/* True if a process of the program still runs and is recorded, or is about to be. Reads /proc. */
bool sj_left_processes_exist(sj_pipeline *pipeline);

/* Detaches from all of these processes, and reports to the registry that their recording ended. The
 * link and the drain must still run. If `are_named`, the summary says that they outlive the
 * program. Blocks like sj_detach_process. */
void sj_left_processes_leave(sj_pipeline *pipeline, bool are_named);

/* Reports the overwritten hooks of a process that was left. Call it while the registry has the
 * process. */
void sj_left_processes_note_overwritten(sj_pipeline *pipeline, pid_t pid,
                                        const sj_detach_process_report *report);

#endif
