/* Visits all living processes of a recording, including processes that are forked meanwhile. */
#ifndef SJ_AGENT_RECORDING_EACH_PROCESS_H
#define SJ_AGENT_RECORDING_EACH_PROCESS_H

#include "agent/registry/registry.h"

typedef void sj_process_visit(void *context, pid_t pid);

/* Calls `visit` once for each living process of the registry, for at most 1024 processes. Then
 * lists the processes again, because a process that is forked meanwhile inherits the hooks that its
 * parent had. Repeats this while the list has new processes, 8 times at most. Not thread-safe. */
void sj_each_process(sj_registry *registry, sj_process_visit *visit, void *context);

#endif
