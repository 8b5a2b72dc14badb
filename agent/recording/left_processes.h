/* Processes of a launched program whose recording ends before they do: those that outlive the first
 * one (servers that go into the background, helpers that nobody waits for), and all of them once
 * the session has its largest size. The recording's thread only. */
#ifndef SJ_AGENT_RECORDING_LEFT_PROCESSES_H
#define SJ_AGENT_RECORDING_LEFT_PROCESSES_H

#include "agent/recording/recording_state.h"

/* sj_left_processes_exist returns whether some process of the program goes on and is recorded, or
 * is about to be. It reads /proc. */
bool sj_left_processes_exist(sj_recording *recording);

/* sj_left_processes_leave takes Sojourn out of all of them, while the link still answers and the
 * drain reads, and notes in the registry that their recording ended here. If `are_named`, the
 * summary says that they outlive the program. Blocking, as sj_detach_process. */
void sj_left_processes_leave(sj_recording *recording, bool are_named);

/* sj_left_processes_note_overwritten reports which hooks a process that was left had overwritten,
 * while it is known to the registry. */
void sj_left_processes_note_overwritten(sj_recording *recording, pid_t pid,
                                        const sj_detach_process_report *report);

#endif
