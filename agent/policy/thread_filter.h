/* Thread names, and whether a policy wants to record the threads. */
#ifndef SJ_AGENT_POLICY_THREAD_FILTER_H
#define SJ_AGENT_POLICY_THREAD_FILTER_H

#include "agent/policy/policy.h"

#include <sys/types.h>

enum { SJ_THREAD_NAME_BYTES = 17 };

/* Reads the current name of a thread. Returns false, and "", if the thread is gone. */
bool sj_thread_read_name(pid_t pid, uint32_t tid, char name[SJ_THREAD_NAME_BYTES]);

/* True if the policy (NULL: none) records threads of that name. */
bool sj_thread_is_wanted(const sj_policy *policy, const char *name);

#endif
