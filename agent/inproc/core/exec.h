/* Programs that a recorded program runs join the session: the agent is preloaded into them. */
#ifndef SJ_AGENT_INPROC_CORE_EXEC_H
#define SJ_AGENT_INPROC_CORE_EXEC_H

#include "proto/base/status.h"

/* The programs that join the session. */
typedef enum sj_exec_followed {
    SJ_EXEC_NONE = 0, /* none; programs are only counted */
    SJ_EXEC_OWN = 1,  /* only programs executed in place of this process; others are counted */
    SJ_EXEC_ALL = 2
} sj_exec_followed;

/* Makes every exec of the process (exec*, posix_spawn, system, popen) pass on the agent and the
 * session of `runtime`, or be counted. `runtime` must stay valid for ever. Returns SJ_EUNSUPPORTED
 * if libc's code is not as expected: then programs run unchanged and are not recorded. In an
 * attached process, a tracer writes the jumps to the gates. */
SJ_MUST_CHECK sj_status sj_exec_follow(const char *runtime, sj_exec_followed which);

/* Runs the program, with the agent if the program joins. Returns if that is not possible; then the
 * caller runs the program as requested. Called by the trampoline before libc's execve. */
void sj_exec_try(const char *path, char *const *arguments, char *const *environment);

/* Like sj_exec_try for execveat, which fexecve and execveat use. */
void sj_exec_try_at(int directory, const char *path, char *const *arguments,
                    char *const *environment, int flags);

#endif
