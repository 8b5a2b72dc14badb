/* Checks whether a program that is about to be run can load the agent. */
#ifndef SJ_AGENT_INPROC_CORE_EXEC_CHECK_H
#define SJ_AGENT_INPROC_CORE_EXEC_CHECK_H

#include "agent/abi/arena.h"

/* Returns why the program at `path`, looked up from `directory`, cannot join a session, or
 * SJ_UNRECORDED_NONE if it can. SJ_UNRECORDED_UNKNOWN means that its file cannot be read. The
 * interpreter of a script is not checked. `agent` is the agent's file. `runtime` is the session's
 * directory, or NULL if there is none. Makes system calls and allocates nothing. Async-signal-safe,
 * thread-safe, also in a vforked child. */
sj_unrecorded sj_exec_check(int directory, const char *path, const char *agent,
                            const char *runtime);

/* Returns why a process like this one cannot reach the recorder, or SJ_UNRECORDED_NONE if it can.
 * Its user or root may have changed. Same restrictions as sj_exec_check. */
sj_unrecorded sj_exec_check_reach(const char *runtime);

#endif
