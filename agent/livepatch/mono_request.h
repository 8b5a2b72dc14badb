/* Requests to the agent in a process with a running Mono. */
#ifndef SJ_AGENT_LIVEPATCH_MONO_REQUEST_H
#define SJ_AGENT_LIVEPATCH_MONO_REQUEST_H

#include "proto/base/error.h"

#include <sys/types.h>

/* Makes the agent of a process follow the registry's selection. The runtime's callbacks stop
 * recording unwanted methods. Hooks of methods that are compiled already are prepared; a transition
 * (transition.h) writes them. The link must be served meanwhile. Blocks for less than a second in
 * most cases. Only a thread that may trace the process calls it. Returns SJ_EAGAIN if no thread of
 * the runtime was at a safepoint, and SJ_ECLOSED if the process has ended. Also returns
 * SJ_ETIMEDOUT or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_mono_select(pid_t pid, sj_error *error);

#endif
