/* Detaches from processes of a launched program that continue when its recording ends, such as
 * background servers and helpers. If the recording ends because the session reaches its maximum
 * size, all processes of the program may continue. Used by the recording's thread only. */
#ifndef SJ_AGENT_RECORDING_LEFT_PROCESSES_H
#define SJ_AGENT_RECORDING_LEFT_PROCESSES_H

#include "agent/recording/pipeline_state.h"

/* True if a process of the program still runs and is recorded, or was forked and will join soon.
 * Reads /proc. */
bool sj_left_processes_exist(sj_pipeline *pipeline);

/* Detaches from all processes of the program that still run, and reports to the registry that their
 * recording ended. The link and the drain must still run. If `are_named` is true, adds the
 * processes to the summary's list of processes that outlive the program. Blocks like
 * sj_detach_process. */
void sj_left_processes_leave(sj_pipeline *pipeline, bool are_named);

/* Reports hooks that the program itself has overwritten, as `report` of the detach lists them. Does
 * nothing if the registry has no living process `pid`. */
void sj_left_processes_note_overwritten(sj_pipeline *pipeline, pid_t pid,
                                        const sj_detach_process_report *report);

#endif
