/* What the agent is asked to do in a JVM that runs (agent/inproc/core/jvm_tasks.h). */
#ifndef SJ_AGENT_LIVEPATCH_JVM_REQUEST_H
#define SJ_AGENT_LIVEPATCH_JVM_REQUEST_H

#include "agent/livepatch/remote_agent.h"

#include <sys/types.h>

/* sj_jvm_join has the agent of a process record the Java methods of its JVM, sj_jvm_select obey the
 * registry's selection there. `*is_joined`: the process has a JVM, and it is recorded. The link
 * must be served meanwhile. Blocking: a second or more, for loaded classes are transformed again;
 * threads run meanwhile, but for the JVM's own stops. Any thread, without sj_tracee_lock: it is
 * taken to begin, and free while the JVM works, so that others can trace the process.
 * SJ_ETIMEDOUT, SJ_ECLOSED it has ended, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_jvm_join(pid_t pid, bool *is_joined, sj_error *error);
SJ_MUST_CHECK sj_status sj_jvm_select(pid_t pid, bool *is_joined, sj_error *error);

/* sj_jvm_leave has the agent, as it was read, give the JVM its classes back; nothing when none is
 * joined. The link need not be served. Errors as above; SJ_EAGAIN: it is not done yet. */
SJ_MUST_CHECK sj_status sj_jvm_leave(sj_tracee *target, sj_remote_agent *agent, sj_error *error);

#endif
