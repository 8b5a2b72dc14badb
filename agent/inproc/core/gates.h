/* Gates: machine code of the agent that a place in the C library leads to (arch.h). */
#ifndef SJ_AGENT_INPROC_CORE_GATES_H
#define SJ_AGENT_INPROC_CORE_GATES_H

#include "agent/inproc/hooks/hooks.h"

#include <stdint.h>

/* sj_gate_put replaces the instruction of SJ_RETURN_ROOM_BYTES at `address` by a jump to `gate`,
 * which runs it and goes on at `*resume`. A process that is left keeps the gate only if it was
 * launched, and `hook` is used only there. Errors as sj_hooks_redirect and sj_modules_redirect. */
SJ_MUST_CHECK sj_status sj_gate_put(uint64_t address, void (*gate)(void), uint64_t *resume,
                                    sj_hooked_module *hook);

#endif
