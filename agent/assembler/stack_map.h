/* Stack map: which execution stack of a thread an address belongs to.
 *
 * The thread's own stack is known by its bounds; all other stacks (makecontext, fibers, alternate
 * signal stacks) are known only by the addresses seen on them. In this order:
 *   1. inside the thread's own bounds: the first stream;
 *   2. the first known region whose top lies above the address (regions of different stacks never
 *      overlap, and stacks grow downwards), if the address lies within what was seen of it (where
 *      each of its open calls is, so that an exit always finds its entry) or not more than 12 KiB
 *      below its innermost open call;
 *   3. the region just below, when the address is not more than 1 KiB above its top (the next
 *      coroutine entry on a reused stack);
 *   4. a new stack.
 * How this fails: a frame larger than 12 KiB on a foreign stack begins a stream of its own (its
 * calls lose their caller, nothing else); a coroutine stack smaller than 12 KiB right below another
 * that is nearly unused can be taken for its continuation (calls of one appear under the other;
 * they end as unwound when the other goes on). A coroutine that moves to another thread leaves its
 * calls open here and its exits are orphans there. When own bounds are unknown, rule 1 is left out
 * and the first stack seen counts as the thread's own. An alternate signal stack inside the own
 * bounds counts as the own stack: a handler there ends the calls deeper than that stack. */
#ifndef SJ_AGENT_ASSEMBLER_STACK_MAP_H
#define SJ_AGENT_ASSEMBLER_STACK_MAP_H

#include "agent/assembler/call_stack.h"

typedef struct sj_stack_map {
    sj_call_stack **streams; /* by rising base */
    uint32_t count;
    size_t capacity;
} sj_stack_map;

/* sj_stack_map_find returns the stream of an address and widens its region; NULL: none known. */
sj_call_stack *sj_stack_map_find(sj_stack_map *map, uint64_t stack);

/* sj_stack_map_add takes ownership of a stream unless it fails. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_stack_map_add(sj_stack_map *map, sj_call_stack *stream);
void sj_stack_map_deinit(sj_stack_map *map); /* frees the streams */

#endif
