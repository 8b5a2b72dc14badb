/* Programs that a recorded program runs join the session: the agent is preloaded into them. */
#ifndef SJ_AGENT_INPROC_CORE_EXEC_H
#define SJ_AGENT_INPROC_CORE_EXEC_H

#include "proto/base/status.h"

#include <stdbool.h>

/* sj_exec_follow makes every exec of the process (exec*, posix_spawn, system, popen) pass on the
 * agent and the session of `runtime`, which is borrowed for good. SJ_EUNSUPPORTED when libc's code
 * is not as expected: programs then run unchanged and are not recorded. `only_own`: of this process
 * only, not of those that it forks: a program that begins by another one (a script's exec). */
SJ_MUST_CHECK sj_status sj_exec_follow(const char *runtime, bool only_own);

/* sj_exec_try runs the program with the agent. It returns if that is not possible; the program is
 * then run as asked. Called by the trampoline in front of libc's execve. */
void sj_exec_try(const char *path, char *const *arguments, char *const *environment);

/* sj_exec_try_at does so for execveat: fexecve, execveat. */
void sj_exec_try_at(int directory, const char *path, char *const *arguments,
                    char *const *environment, int flags);

#endif
