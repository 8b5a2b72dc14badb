/* Calls that were open when a process was attached to. */
#ifndef SJ_AGENT_CONTROL_PREOPEN_H
#define SJ_AGENT_CONTROL_PREOPEN_H

#include "agent/control/attach.h"
#include "agent/control/drain.h"
#include "agent/control/roster.h"

/* sj_preopen hands the calls of hooked functions that were open at `ticks`, when attach committed,
 * to the drain, which has waited for them (sj_drain_hold). `number` is the process's in the
 * session. Returns how many. Blocking: unwinds all threads. */
uint32_t sj_preopen(sj_attach *attach, pid_t pid, uint64_t number, sj_roster *roster,
                    sj_drain *drain, uint64_t ticks);

#endif
