/* The names that threads give themselves, and whether a policy wants them recorded. */
#ifndef SJ_AGENT_POLICY_THREAD_FILTER_H
#define SJ_AGENT_POLICY_THREAD_FILTER_H

#include "agent/policy/policy.h"

#include <sys/types.h>

enum { SJ_THREAD_NAME_BYTES = 17 };

/* sj_thread_read_name asks for a thread's present name; false, and "", when it is gone. */
bool sj_thread_read_name(pid_t pid, uint32_t tid, char name[SJ_THREAD_NAME_BYTES]);

/* sj_thread_is_wanted returns whether the policy (NULL: none) records threads of that name. */
bool sj_thread_is_wanted(const sj_policy *policy, const char *name);

#endif
