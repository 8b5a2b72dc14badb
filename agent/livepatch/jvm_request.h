/* Requests to the agent in a running JVM (agent/inproc/core/runtime_tasks.h). */
#ifndef SJ_AGENT_LIVEPATCH_JVM_REQUEST_H
#define SJ_AGENT_LIVEPATCH_JVM_REQUEST_H

#include "agent/livepatch/remote_agent.h"

#include <sys/types.h>

/* sj_jvm_join makes the agent of a process record the Java methods of its JVM. sj_jvm_select makes
 * the agent follow the registry's selection. `*is_joined` is true if the process has a JVM whose
 * methods the agent records. The link must be served meanwhile. Blocks for a second or more,
 * because the JVM transforms loaded classes again. Threads run meanwhile, except during the JVM's
 * own stops. Thread-safe; call them without sj_tracee_lock, which they take only to start the task.
 * Return SJ_ETIMEDOUT after 180 s, SJ_ECLOSED if the process has ended, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_jvm_join(pid_t pid, bool *is_joined, sj_error *error);
SJ_MUST_CHECK sj_status sj_jvm_select(pid_t pid, bool *is_joined, sj_error *error);

/* Makes the agent that `agent` describes remove its probes from the JVM's classes. Does nothing if
 * no JVM is joined. The link need not be served. Blocks for up to 120 s. Returns SJ_EAGAIN if the
 * probes are not removed yet. Other errors are those of sj_jvm_join. */
SJ_MUST_CHECK sj_status sj_jvm_leave(sj_tracee *target, sj_remote_agent *agent, sj_error *error);

#endif
