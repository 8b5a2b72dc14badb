/* What the agent in a running process is asked for. */
#ifndef SJ_AGENT_LIVEPATCH_REMOTE_REQUEST_H
#define SJ_AGENT_LIVEPATCH_REMOTE_REQUEST_H

#include "agent/livepatch/remote_agent.h"

/* sj_remote_agent_await is sj_remote_agent_find that waits until the tables hold still. Blocking:
 * up to 200 ms. */
SJ_MUST_CHECK sj_status sj_remote_agent_await(const sj_tracee *target, sj_remote_agent *agent,
                                              sj_error *error);

/* sj_remote_agent_request makes a thread that holds no lock call such a function, which prepares
 * changes, while the others run; the link must be served meanwhile. The agent's tables change.
 * Blocking: the time of planning. SJ_ETIMEDOUT no thread reached a safepoint, SJ_ECLOSED the
 * process has ended, SJ_ENOTFOUND the agent is an older one, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_remote_agent_request(sj_tracee *target, const sj_remote_agent *agent,
                                                const char *name, sj_error *error);

#endif
