/* Processes of a launched program that outlive the first one: servers that go into the background,
 * helpers that nobody waits for. The recording's thread only. */
#ifndef SJ_AGENT_RECORDING_LEFT_PROCESSES_H
#define SJ_AGENT_RECORDING_LEFT_PROCESSES_H

#include "agent/recording/recording_state.h"

/* sj_left_processes_exist returns whether some process of the program goes on and is recorded, or
 * is about to be. It reads /proc. */
bool sj_left_processes_exist(sj_recording *recording);

/* sj_left_processes_leave takes Sojourn out of all of them, while the link still answers and the
 * drain reads, notes them in the summary, and in the registry that their recording ended here.
 * Blocking, as sj_detach_process. */
void sj_left_processes_leave(sj_recording *recording);

#endif
