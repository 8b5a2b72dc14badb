/* What the agent is asked to do in a Mono that runs. */
#ifndef SJ_AGENT_LIVEPATCH_MONO_REQUEST_H
#define SJ_AGENT_LIVEPATCH_MONO_REQUEST_H

#include "proto/base/error.h"

#include <sys/types.h>

/* sj_mono_select has the agent of a process obey the registry's selection: what is not wanted any
 * more is recorded no longer by the runtime's callbacks; hooks of what has been compiled already
 * are prepared, for a transition (transition.h) to write. The link must be served meanwhile.
 * Blocking: up to a second. One thread, which may trace the process. SJ_EAGAIN no thread of the
 * runtime stood still, SJ_ECLOSED it has ended, SJ_ETIMEDOUT, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_mono_select(pid_t pid, sj_error *error);

#endif
