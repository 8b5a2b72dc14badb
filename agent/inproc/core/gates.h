/* Gates: machine code of the agent to which a place in the C library jumps (arch.h). */
#ifndef SJ_AGENT_INPROC_CORE_GATES_H
#define SJ_AGENT_INPROC_CORE_GATES_H

#include "agent/inproc/hooks/hooks.h"

#include <stdint.h>

/* Replaces the instruction of SJ_RETURN_PATCH_BYTES at `address` by a jump to `gate`. The gate runs
 * that instruction and continues at `*resume`. In a launched process, the change is stored in
 * `hook` and stays until the process ends. In an attached process, `hook` is not used, and a detach
 * undoes the change. Returns the errors of sj_hooks_redirect or sj_modules_redirect. */
SJ_MUST_CHECK sj_status sj_gate_put(uint64_t address, void (*gate)(void), uint64_t *resume,
                                    sj_hooked_module *hook);

#endif
