/* The program's place of a thread that runs the agent's code: a probe's slow path, or a dispatched
 * call. */
#ifndef SJ_AGENT_INPROC_CORE_AGENT_PLACE_H
#define SJ_AGENT_INPROC_CORE_AGENT_PLACE_H

#include "agent/abi/saved_context.h"

#include <stdbool.h>
#include <stdint.h>

/* sj_agent_place_show changes a signal's frame whose thread was interrupted in the agent's code:
 * it gets the program's registers at the entry or exit of the function that the agent records. The
 * thread's own registers are kept in `saved` and in the agent's frame. False: the place is not
 * known, or the alternate stack is too small, and nothing is changed. Reads and writes the thread's
 * stack. Async-signal-safe. */
bool sj_agent_place_show(void *context, sj_saved_context *saved);

/* sj_agent_place_return gives a signal's frame the registers back that sj_agent_place_show has
 * kept. Does nothing if it kept none. Async-signal-safe. */
void sj_agent_place_return(void *context, const sj_saved_context *saved);

#endif
