/* Visits all living processes of a recording, including processes that are forked meanwhile. */
#ifndef SJ_AGENT_RECORDING_EACH_PROCESS_H
#define SJ_AGENT_RECORDING_EACH_PROCESS_H

#include "agent/registry/registry.h"

typedef void sj_process_visit(void *context, pid_t pid);

/* Calls `visit` once for each living process of the registry, for at most 1024 processes. Repeats
 * the list a few times while it has new processes: a forked process inherits the hooks of that
 * moment. Not thread-safe. */
void sj_each_process(sj_registry *registry, sj_process_visit *visit, void *context);

#endif
