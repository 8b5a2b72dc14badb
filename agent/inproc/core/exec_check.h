/* Whether a program that is about to be run can be given the agent. */
#ifndef SJ_AGENT_INPROC_CORE_EXEC_CHECK_H
#define SJ_AGENT_INPROC_CORE_EXEC_CHECK_H

#include "agent/abi/arena.h"

/* sj_exec_check returns why the program at `path`, looked up from `directory`, cannot join a
 * session; SJ_UNRECORDED_NONE: it can. SJ_UNRECORDED_UNKNOWN: it is no program that can be run, or
 * a script, of which the interpreter is asked. `agent` is the agent's file, `runtime` the session's
 * directory; NULL: there is none. Makes system calls, allocates nothing; async-signal-safe; any
 * thread, also in a vforked child. */
sj_unrecorded sj_exec_check(int directory, const char *path, const char *agent,
                            const char *runtime);

/* sj_exec_check_reach returns why a process like this one, which may have another user or another
 * root by now, cannot reach the recorder; SJ_UNRECORDED_NONE: it can. As above. */
sj_unrecorded sj_exec_check_reach(const char *runtime);

#endif
