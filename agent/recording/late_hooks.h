/* Hooks of modules whose plans were made while the program ran on. */
#ifndef SJ_AGENT_RECORDING_LATE_HOOKS_H
#define SJ_AGENT_RECORDING_LATE_HOOKS_H

#include "agent/recording/recording_state.h"

/* sj_late_hooks_apply gives the living processes the hooks of plans that were made since they ran
 * on without; does nothing if there is no such plan. A process that refuses is tried again at the
 * next call. Emulated programs keep running without. Blocking, as sj_transition_process. The
 * recording's thread. */
void sj_late_hooks_apply(sj_recording *recording);

#endif
