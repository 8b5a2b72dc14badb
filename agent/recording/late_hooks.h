/* Hooks modules whose plans became available after the program had continued without them. */
#ifndef SJ_AGENT_RECORDING_LATE_HOOKS_H
#define SJ_AGENT_RECORDING_LATE_HOOKS_H

#include "agent/recording/pipeline_state.h"

/* Applies the plans that became available late to the living processes. If this fails in a process,
 * the next call tries again, a limited number of times. Emulated programs are not hooked late.
 *
 * Blocks like sj_transition_process. Called by the recording's thread. */
void sj_late_hooks_apply(sj_pipeline *pipeline);

#endif
