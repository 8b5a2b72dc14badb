/* A review: the agent in a running process asks its companion which functions more are wanted, and
 * makes their hooks, in one of the threads while the others run. Its tables have changed
 * afterwards. */
#ifndef SJ_AGENT_CONTROL_REVIEW_H
#define SJ_AGENT_CONTROL_REVIEW_H

#include "agent/control/remote_agent.h"

/* sj_review lets the agent do that; the link must be served meanwhile. Blocking: the time that
 * planning takes. SJ_ETIMEDOUT no thread came to a point at which it can be interrupted, SJ_ECLOSED
 * the process has ended, SJ_ENOTFOUND the agent is an older one, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_review(sj_target *target, const sj_remote_agent *agent, sj_error *error);

#endif
