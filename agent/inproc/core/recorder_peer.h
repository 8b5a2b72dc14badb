/* The recorder, as the agent finds it at the start of a program: the process that launched the
 * program (recorder_peer.c), or, in libsojourn-direct.so, a thread inside of it (agent/direct).
 * Both answer on the link. */
#ifndef SJ_AGENT_INPROC_CORE_RECORDER_PEER_H
#define SJ_AGENT_INPROC_CORE_RECORDER_PEER_H

#include <stdbool.h>
#include <stddef.h>

/* sj_recorder_peer_meet finds the recorder by the environment, from which it removes the agent, and
 * writes the session's runtime directory to `runtime`. False: there is no recorder. Called before
 * the program starts its first thread. */
bool sj_recorder_peer_meet(char **arguments, char **environment, char *runtime,
                           size_t runtime_bytes);

/* sj_recorder_peer_exec: the calling process is about to execute another program. `*entries` NULL:
 * that program joins the session of the runtime directory. Otherwise these entries belong into its
 * environment, because the recorder ends with the present program and has delivered what it had;
 * NULL-terminated, borrowed. May be called in a vforked child. */
void sj_recorder_peer_exec(const char *const **entries);

/* sj_recorder_peer_part: the program exits normally, and everything is recorded. */
void sj_recorder_peer_part(void);

#endif
