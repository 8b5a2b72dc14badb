/* Stacks of a program's past, as the monitor of freed memory copied them. */
#ifndef SJ_AGENT_ZOMBIES_STACK_WALK_H
#define SJ_AGENT_ZOMBIES_STACK_WALK_H

#include "agent/abi/zombies.h"
#include "agent/ptrace/unwinder.h"

/* sj_stack_walk_prepare makes the unwinder that knows `count` modules. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stack_walk_prepare(const sj_zombie_module *modules, size_t count,
                                              sj_unwinder **unwinder);

/* sj_stack_walk returns the number of frames, innermost first, at most `capacity`; offsets of
 * callers are those of the instruction behind the call. A stack that cannot be followed to its end
 * is followed as far as possible. `is_fault`: the innermost frame stopped at its instruction. */
size_t sj_stack_walk(sj_unwinder *unwinder, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_code_place *frames, size_t capacity);

#endif
