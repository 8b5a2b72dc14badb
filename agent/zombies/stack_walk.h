/* Stacks of a program's past: unwound from registers and the top of a stack, as they were copied,
 * by the unwind tables of the modules that were mapped then. The process may have ended. */
#ifndef SJ_AGENT_ZOMBIES_STACK_WALK_H
#define SJ_AGENT_ZOMBIES_STACK_WALK_H

#include "agent/abi/zombies.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_stack_walker sj_stack_walker;

typedef struct sj_walked_frame {
    const char *function; /* symbol; NULL: none; borrowed from the walker */
    const char *path;     /* of the module; NULL: in no known module; borrowed */
    uint64_t offset;      /* in the module's file; without one the address itself */
} sj_walked_frame;

/* sj_stack_walker_new reads `count` modules, whose texts it copies. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stack_walker_new(const sj_zombie_module *modules, size_t count,
                                            sj_stack_walker **walker);
void sj_stack_walker_free(sj_stack_walker *walker);

/* sj_stack_walk returns the number of frames, innermost first, at most `capacity`; offsets of
 * callers are those of the instruction behind the call. A stack that cannot be followed to its end
 * is followed as far as possible. `is_fault`: the innermost frame stopped at its instruction. */
size_t sj_stack_walk(sj_stack_walker *walker, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_walked_frame *frames, size_t capacity);

#endif
