/* An invented program that does every unusual thing a thread can do. It throws, makes tail calls,
 * has exits without entries, and turns the clock back. It writes notes of drops, waits and pauses,
 * and some nonsense records. */
#ifndef SJ_TESTS_SUPPORT_UNUSUAL_PROGRAM_H
#define SJ_TESTS_SUPPORT_UNUSUAL_PROGRAM_H

#include "tests/support/call_trace.h"

/* All stack addresses fit into one region of an unknown stack. */
enum {
    UNUSUAL_TOP = 0x100000,
    UNUSUAL_STACK_BYTES = 8192,
    UNUSUAL_LOW = UNUSUAL_TOP - UNUSUAL_STACK_BYTES
};

typedef struct unusual_program {
    uint64_t random;
    uint64_t ticks; /* time of the last record and the latest of all */
    bool deep;      /* prefers entries to exits */
    bool jumps;     /* the last exit was a tail call */
    uint32_t functions[UNUSUAL_STACK_BYTES];
    uint32_t stacks[UNUSUAL_STACK_BYTES];
    uint32_t depth;
} unusual_program;

/* Returns a random number below `limit`. */
uint32_t unusual_program_below(unusual_program *made, uint32_t limit);

/* unusual_program_first returns the first record, an entry at the highest address.
 * unusual_program_next returns the next record; it never ends. */
sj_record unusual_program_first(unusual_program *made);
sj_record unusual_program_next(unusual_program *made);

#endif
