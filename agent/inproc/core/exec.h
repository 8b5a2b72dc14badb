/* Programs that a recorded program runs join the session: the agent is preloaded into them. */
#ifndef SJ_AGENT_INPROC_CORE_EXEC_H
#define SJ_AGENT_INPROC_CORE_EXEC_H

#include "proto/base/status.h"

/* Which programs join the session. */
typedef enum sj_exec_followed {
    SJ_EXEC_NONE = 0, /* none: they are counted */
    SJ_EXEC_OWN =
        1, /* what this process becomes (a script's exec); those of children are counted */
    SJ_EXEC_ALL = 2
} sj_exec_followed;

/* sj_exec_follow makes every exec of the process (exec*, posix_spawn, system, popen) pass on the
 * agent and the session of `runtime`, which is borrowed for good, or be counted. SJ_EUNSUPPORTED
 * when libc's code is not as expected: programs then run unchanged and are not recorded. In an
 * attached process a tracer writes what leads there. */
SJ_MUST_CHECK sj_status sj_exec_follow(const char *runtime, sj_exec_followed which);

/* sj_exec_try runs the program, with the agent where it joins. It returns if that is not possible;
 * the program is then run as asked. Called by the trampoline in front of libc's execve. */
void sj_exec_try(const char *path, char *const *arguments, char *const *environment);

/* sj_exec_try_at does so for execveat: fexecve, execveat. */
void sj_exec_try_at(int directory, const char *path, char *const *arguments,
                    char *const *environment, int flags);

#endif
