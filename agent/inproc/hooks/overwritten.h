/* Finds hooks that the program has overwritten. */
#ifndef SJ_AGENT_INPROC_HOOKS_OVERWRITTEN_H
#define SJ_AGENT_INPROC_HOOKS_OVERWRITTEN_H

#include "agent/abi/hooked_module.h"
#include "agent/abi/overwritten.h"

/* Adds to `found` the functions of the module whose written hooks are no longer in the text. Skips
 * text that is not mapped. Makes system calls: some hundred thousand functions take milliseconds.
 * The module's changes must not be modified meanwhile. */
void sj_hooks_find_overwritten(const sj_hooked_module *module, sj_overwritten *found);

#endif
