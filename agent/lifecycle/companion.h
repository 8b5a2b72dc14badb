/* The companion, as the agent meets it at the start of a program: the process that launched the
 * program (companion.c), or, in libsojourn-direct.so, a thread inside of it (agent/direct). Either
 * way it answers on the link. */
#ifndef SJ_AGENT_LIFECYCLE_COMPANION_H
#define SJ_AGENT_LIFECYCLE_COMPANION_H

#include <stdbool.h>
#include <stddef.h>

/* sj_companion_meet finds the companion by the environment, which it restores to what it was before
 * we were added to it, and tells the runtime directory of the session. False: there is none, and
 * nothing is to be done. Called before the program's first thread is started. */
bool sj_companion_meet(char **arguments, char **environment, char *runtime, size_t runtime_bytes);

/* sj_companion_exec: the calling process is about to become another program, which joins the
 * session of the runtime directory (NULL), or has to be told by these entries of its environment:
 * its companion ends with the present program, and has delivered what it had. `*entries` is
 * NULL-terminated and borrowed. May be called in a vforked child. */
void sj_companion_exec(const char *const **entries);

/* sj_companion_part: the program ends in order, and everything is recorded. */
void sj_companion_part(void);

#endif
