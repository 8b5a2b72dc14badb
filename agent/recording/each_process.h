/* All living processes of a recording, also those that are forked meanwhile. */
#ifndef SJ_AGENT_RECORDING_EACH_PROCESS_H
#define SJ_AGENT_RECORDING_EACH_PROCESS_H

#include "agent/registry/registry.h"

typedef void sj_process_visit(void *context, pid_t pid);

/* sj_each_process calls `visit` once for each living process of the registry, at most 1024. It goes
 * over them again while there are new ones, some rounds: a process that forks hands its hooks of
 * that moment down. One thread. */
void sj_each_process(sj_registry *registry, sj_process_visit *visit, void *context);

#endif
