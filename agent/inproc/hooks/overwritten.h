/* Hooks that the program has overwritten. */
#ifndef SJ_AGENT_INPROC_HOOKS_OVERWRITTEN_H
#define SJ_AGENT_INPROC_HOOKS_OVERWRITTEN_H

#include "agent/abi/hooked_module.h"
#include "agent/abi/overwritten.h"

/* sj_hooks_find_overwritten adds the functions of a module whose written hooks are not in the text
 * any more. Text that is not mapped is passed over. Makes system calls: some hundred thousand
 * functions take milliseconds. Nobody changes the module's table meanwhile. */
void sj_hooks_find_overwritten(const sj_hooked_module *module, sj_overwritten *found);

#endif
