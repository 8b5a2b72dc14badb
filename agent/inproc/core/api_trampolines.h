/* Trampolines for the calls of sojourn.h in an attached process: the loader has bound the weak
 * references to the agent to 0, and attaching binds them to these. */
#ifndef SJ_AGENT_INPROC_CORE_API_TRAMPOLINES_H
#define SJ_AGENT_INPROC_CORE_API_TRAMPOLINES_H

#include <stdint.h>

/* sj_api_trampolines_bind binds the references of all loaded modules; may be repeated. Returns the
 * bytes of the trampolines, which stay in the program; 0: no module has such references. Takes the
 * loader's lock. */
uint64_t sj_api_trampolines_bind(void);

/* sj_api_trampolines_close makes all these calls return at once: the agent is going to be unloaded.
 * All other threads are stopped, none of them in the agent. Takes no lock. */
void sj_api_trampolines_close(void);

#endif
