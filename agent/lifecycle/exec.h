/* Programs that the recorded one runs join the session: they are given the agent as well. */
#ifndef SJ_AGENT_LIFECYCLE_EXEC_H
#define SJ_AGENT_LIFECYCLE_EXEC_H

#include "proto/status.h"

/* sj_exec_follow makes every exec of the process (exec*, posix_spawn, system, popen) hand on the
 * agent and the session of `runtime`, which is borrowed for good. SJ_EUNSUPPORTED when libc's code
 * is not as expected: then programs are run as ever and are not recorded. */
SJ_MUST_CHECK sj_status sj_exec_follow(const char *runtime);

/* sj_exec_try runs the program with the agent; it comes back when that is not possible, and then
 * the program is to be run as asked. Called by the gate in front of libc's execve. */
void sj_exec_try(const char *path, char *const *arguments, char *const *environment);

/* sj_exec_restore undoes it. */
void sj_exec_restore(void);

#endif
