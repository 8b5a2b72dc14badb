/* Gates: what a program that was attached to calls by sojourn.h. The loader has resolved its weak
 * references to the agent to nothing long ago; attaching leads them here. */
#ifndef SJ_AGENT_LIFECYCLE_API_GATES_H
#define SJ_AGENT_LIFECYCLE_API_GATES_H

#include <stdint.h>

/* sj_api_gates_follow leads the references of all modules that are loaded now to the agent; may be
 * repeated. Returns the bytes of the gates, 0: no module has such references. Takes the loader's
 * lock. */
uint64_t sj_api_gates_follow(void);

/* sj_api_gates_close makes all calls return at once: the agent is going to be unloaded. No thread
 * may be on its way in: all are stopped, or it does not matter. Takes no lock. */
void sj_api_gates_close(void);

#endif
