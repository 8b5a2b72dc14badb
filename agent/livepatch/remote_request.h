/* Requests to the agent in a running process. */
#ifndef SJ_AGENT_LIVEPATCH_REMOTE_REQUEST_H
#define SJ_AGENT_LIVEPATCH_REMOTE_REQUEST_H

#include "agent/livepatch/remote_agent.h"

/* Does the same as sj_remote_agent_find, but waits until the tables are stable. Blocks for up to
 * 200 ms. Returns an error of sj_remote_agent_find; SJ_EAGAIN if the tables are still changing. */
SJ_MUST_CHECK sj_status sj_remote_agent_await(const sj_tracee *target, sj_remote_agent *agent,
                                              sj_error *error);

/* Makes a thread that holds no lock call a function that prepares changes, while the other threads
 * run. The link must be served meanwhile. The agent's tables change. Blocks while the functions are
 * planned. Returns SJ_ETIMEDOUT if no thread reached a safepoint, and SJ_ECLOSED if the process has
 * ended. Returns SJ_ENOTFOUND if the agent is older, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_remote_agent_request(sj_tracee *target, const sj_remote_agent *agent,
                                                const char *name, sj_error *error);

#endif
