/* Finds the calls that were open when the recorder attached to a process. */
#ifndef SJ_AGENT_RECORDING_OPEN_CALLS_AT_ATTACH_H
#define SJ_AGENT_RECORDING_OPEN_CALLS_AT_ATTACH_H

#include "agent/attach/attach.h"
#include "agent/drain/drain.h"
#include "agent/registry/registry.h"

/* Passes the calls of hooked functions that were open at `ticks`, the time of the attach, to the
 * drain. The drain has waited for these calls since sj_drain_hold. `number` is the process's number
 * in the session. Returns the number of calls; 0 on any failure. Blocks while it unwinds all
 * threads. */
uint32_t sj_open_calls_at_attach(sj_attach *attach, pid_t pid, uint64_t number,
                                 sj_registry *registry, sj_drain *drain, uint64_t ticks);

#endif
