/* An invented program that does every unusual thing a thread can do. It throws, makes tail calls,
 * has exits without entries, and turns the clock back. It writes notes of drops, waits and pauses,
 * and some nonsense records. */
#ifndef SJ_TESTS_SUPPORT_ODD_PROGRAM_H
#define SJ_TESTS_SUPPORT_ODD_PROGRAM_H

#include "tests/support/call_trace.h"

/* All stack addresses fit into one region of an unknown stack. */
enum { ODD_TOP = 0x100000, ODD_STACK_BYTES = 8192, ODD_LOW = ODD_TOP - ODD_STACK_BYTES };

typedef struct odd_program {
    uint64_t random;
    uint64_t ticks; /* time of the last record and the latest of all */
    bool deep;      /* prefers entries to exits */
    bool jumps;     /* the last exit was a tail call */
    uint32_t functions[ODD_STACK_BYTES];
    uint32_t stacks[ODD_STACK_BYTES];
    uint32_t depth;
} odd_program;

/* Returns a random number below `limit`. */
uint32_t odd_program_below(odd_program *made, uint32_t limit);

/* odd_program_first returns the first record, an entry at the highest address. odd_program_next
 * returns the next record; it never ends. */
sj_record odd_program_first(odd_program *made);
sj_record odd_program_next(odd_program *made);

#endif
