/* The recorder, as the agent finds it at the start of a program. It is the process that launched
 * the program (recorder_peer.c). In libsojourn-direct.so it is a thread of the program
 * (agent/direct). Both reply on the link. */
#ifndef SJ_AGENT_INPROC_CORE_RECORDER_PEER_H
#define SJ_AGENT_INPROC_CORE_RECORDER_PEER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the recorder by the environment, and removes the agent's entries. Writes the session's
 * runtime directory to `runtime`. Returns false if there is no recorder. Call it before the program
 * starts its first thread. */
bool sj_recorder_peer_meet(char **arguments, char **environment, char *runtime,
                           size_t runtime_bytes);

/* Call it when the process is about to execute another program. If it sets `*entries` to NULL, the
 * program joins the session of the runtime directory. Otherwise the recorder ends with the present
 * program, and has delivered its data when this function returns. The caller then adds `*entries`
 * (NULL-terminated, borrowed) to the new program's environment. May be called in a vforked child.
 */
void sj_recorder_peer_exec(const char *const **entries);

/* In direct mode, waits until the recorder's thread has delivered the data, at most as long as the
 * settings allow. Otherwise does nothing. Call it when the program exits normally, after everything
 * is recorded. */
void sj_recorder_peer_part(void);

#endif
