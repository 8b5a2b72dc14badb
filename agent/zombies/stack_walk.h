/* Unwinds copies of stacks that the heap monitor has made. */
#ifndef SJ_AGENT_ZOMBIES_STACK_WALK_H
#define SJ_AGENT_ZOMBIES_STACK_WALK_H

#include "agent/abi/zombies.h"
#include "agent/ptrace/unwinder.h"

/* Creates an unwinder for `count` modules. The caller frees it. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stack_walk_prepare(const sj_zombie_module *modules, size_t count,
                                              sj_unwinder **unwinder);

/* Writes at most `capacity` stack frames, innermost first. Returns their number. If the stack
 * cannot be unwound to its end, writes the frames up to there. The offset of a caller is the offset
 * of the instruction after the call. `is_fault` is true if the innermost pc is the faulting
 * instruction, false if it is a return address. */
size_t sj_stack_walk(sj_unwinder *unwinder, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_code_place *frames, size_t capacity);

#endif
