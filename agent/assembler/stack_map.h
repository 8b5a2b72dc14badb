/* Stack map: finds the execution stack of a thread that an address belongs to.
 *
 * The bounds of the thread's own stack are known. Other stacks (makecontext, fibers, alternate
 * signal stacks) are known only by the addresses seen on them. The first rule that matches decides:
 *   1. The address lies inside the thread's own bounds: the first stream.
 *   2. The lowest known region whose top lies above the address (regions do not overlap, and stacks
 *      grow downwards), if the address lies within the part of the region that was seen, or at most
 *      12 KiB below its innermost open call. All open calls lie in that part, so an exit always
 *      finds its entry.
 *   3. The region with the highest top below the address, if the address is at most 1 KiB above
 * that top: the next coroutine that is entered on a reused stack.
 *   4. A new stack.
 *
 * How this fails:
 *   A frame larger than 12 KiB on a foreign stack begins a stream of its own. Its calls lose their
 *   caller, nothing else.
 *   A coroutine stack smaller than 12 KiB right below a nearly unused one can be mistaken for its
 *   continuation. Then calls of one coroutine appear as callees of the other's calls, and end as
 *   unwound when the other coroutine resumes.
 *   A coroutine that moves to another thread leaves its calls open in the first thread, and its
 *   exits are orphans in the other thread.
 *
 * If the thread's own bounds are unknown, rule 1 does not apply, and the first stack seen counts as
 * the thread's own.
 *
 * An alternate signal stack inside the thread's own stack (a local array) counts as another stack
 * while a handler runs on it (alternate_stack.h). It counts as part of the thread's own stack if
 * the handler was running when the recording began, or if rt_sigaction could not be hooked. */
#ifndef SJ_AGENT_ASSEMBLER_STACK_MAP_H
#define SJ_AGENT_ASSEMBLER_STACK_MAP_H

#include "agent/assembler/call_stack.h"

typedef struct sj_stack_map {
    sj_call_stack **streams; /* by rising base */
    uint32_t count;
    size_t capacity;
} sj_stack_map;

/* Returns the stream of an address and widens its region; NULL if no known region matches. */
sj_call_stack *sj_stack_map_find(sj_stack_map *map, uint64_t stack);

/* Adds a stream and takes ownership of it. On SJ_ENOMEM the caller keeps it. */
SJ_MUST_CHECK sj_status sj_stack_map_add(sj_stack_map *map, sj_call_stack *stream);
void sj_stack_map_deinit(sj_stack_map *map); /* also frees the streams */

#endif
