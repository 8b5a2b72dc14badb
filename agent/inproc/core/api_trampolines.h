/* Trampolines for the calls of sojourn.h in an attached process. The loader has bound the weak
 * references to the agent to 0. Attaching binds them to these trampolines. */
#ifndef SJ_AGENT_INPROC_CORE_API_TRAMPOLINES_H
#define SJ_AGENT_INPROC_CORE_API_TRAMPOLINES_H

#include <stdint.h>

/* Binds the references of all loaded modules. May be repeated. Returns the size of the trampolines
 * in bytes, which stay in the program. Returns 0 if no module refers to these functions, or if
 * memory for trampolines is lacking. Takes the loader's lock. */
uint64_t sj_api_trampolines_bind(void);

/* Makes all these calls return at once, because the agent is about to be unloaded. All other
 * threads are stopped, and none is in the agent. Takes no lock. */
void sj_api_trampolines_close(void);

#endif
