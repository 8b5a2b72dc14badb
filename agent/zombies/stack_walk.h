/* Unwinds stacks that the monitor of freed memory has copied earlier. */
#ifndef SJ_AGENT_ZOMBIES_STACK_WALK_H
#define SJ_AGENT_ZOMBIES_STACK_WALK_H

#include "agent/abi/zombies.h"
#include "agent/ptrace/unwinder.h"

/* Creates an unwinder for `count` modules. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stack_walk_prepare(const sj_zombie_module *modules, size_t count,
                                              sj_unwinder **unwinder);

/* Writes the frames of a stack, innermost first, at most `capacity`. Returns their number. The
 * offset of a caller is that of the instruction after the call. If a stack cannot be unwound to its
 * end, the frames so far are written. `is_fault` is true if the thread stopped at the innermost
 * frame's instruction. */
size_t sj_stack_walk(sj_unwinder *unwinder, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_code_place *frames, size_t capacity);

#endif
