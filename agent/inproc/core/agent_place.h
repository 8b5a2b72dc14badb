/* Finds the program's place for a thread that runs agent code: a probe's slow path, or a dispatched
 * call. */
#ifndef SJ_AGENT_INPROC_CORE_AGENT_PLACE_H
#define SJ_AGENT_INPROC_CORE_AGENT_PLACE_H

#include "agent/abi/saved_context.h"

#include <stdbool.h>
#include <stdint.h>

/* Changes the frame of a signal that has interrupted the agent's code. The frame gets the program's
 * registers at the entry or exit of the function that the agent is recording. The registers that
 * the thread had in the agent are kept in `saved` and in the agent's frame. Returns false, and
 * changes nothing, if the place is unknown or the alternate stack is too small. Reads and writes
 * the thread's stack. Async-signal-safe. */
bool sj_agent_place_show(void *context, sj_saved_context *saved);

/* Restores the registers that sj_agent_place_show has kept to the frame of the signal. Does nothing
 * if it kept none. Async-signal-safe. */
void sj_agent_place_return(void *context, const sj_saved_context *saved);

#endif
