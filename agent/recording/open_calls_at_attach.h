/* Calls that were open when a process was attached to. */
#ifndef SJ_AGENT_RECORDING_OPEN_CALLS_AT_ATTACH_H
#define SJ_AGENT_RECORDING_OPEN_CALLS_AT_ATTACH_H

#include "agent/attach/attach.h"
#include "agent/drain/drain.h"
#include "agent/registry/registry.h"

/* sj_open_calls_at_attach hands the calls of hooked functions that were open at `ticks`, when
 * attach committed, to the drain, which has waited for them (sj_drain_hold). `number` is the
 * process's in the session. Returns how many. Blocking: unwinds all threads. */
uint32_t sj_open_calls_at_attach(sj_attach *attach, pid_t pid, uint64_t number,
                                 sj_registry *registry, sj_drain *drain, uint64_t ticks);

#endif
