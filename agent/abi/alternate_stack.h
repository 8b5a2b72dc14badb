/* Finds the records of signal handlers that run on an alternate signal stack inside the thread's
 * own stack, for example in a local array. Two notes in the thread's records give the low and the
 * high end of that range. From the second note on, addresses in the range belong to the handler's
 * stack, not to the thread's own stack. */
#ifndef SJ_AGENT_ABI_ALTERNATE_STACK_H
#define SJ_AGENT_ABI_ALTERNATE_STACK_H

#include "agent/abi/record.h"

typedef struct sj_alternate_stack {
    uint64_t low;
    uint64_t span;     /* 0: no handler runs there */
    uint64_t next_low; /* argument of a SJ_NOTE_ALTERNATE_LOW that waits for the high end; or 0 */
} sj_alternate_stack;

/* True if a handler runs on the alternate stack, and the address `stack` lies in it. */
static inline bool sj_alternate_stack_has(const sj_alternate_stack *alternate, uint64_t stack)
{
    return stack - alternate->low < alternate->span;
}

/* Updates the range by an SJ_NOTE_ALTERNATE_LOW or SJ_NOTE_ALTERNATE_HIGH. Ignores all other notes,
 * and a high end whose low end was dropped. */
static inline void sj_alternate_stack_note(sj_alternate_stack *alternate, uint32_t note,
                                           uint64_t argument)
{
    if (note == SJ_NOTE_ALTERNATE_LOW) {
        alternate->next_low = argument;
        alternate->span = argument != 0 ? alternate->span : 0;
    } else if (note == SJ_NOTE_ALTERNATE_HIGH) {
        if (alternate->next_low != 0 && argument > alternate->next_low) {
            alternate->low = alternate->next_low;
            alternate->span = argument - alternate->low;
        }
        alternate->next_low = 0;
    }
}

#endif
