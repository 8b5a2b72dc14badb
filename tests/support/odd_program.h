/* A made-up program with everything odd that a thread can do: throws, tail calls, orphan exits, a
 * clock that goes back, notes of drops, waits and pauses, and now and then nonsense. */
#ifndef SJ_TESTS_SUPPORT_ODD_PROGRAM_H
#define SJ_TESTS_SUPPORT_ODD_PROGRAM_H

#include "tests/support/call_trace.h"

/* All stack addresses lie within what one region of an unknown stack reaches over. */
enum { ODD_TOP = 0x100000, ODD_STACK_BYTES = 8192, ODD_LOW = ODD_TOP - ODD_STACK_BYTES };

typedef struct odd_program {
    uint64_t random;
    uint64_t ticks; /* of the last record; none is later */
    bool deep;      /* prefers to enter */
    bool jumps;     /* the last exit was a tail call */
    uint32_t functions[ODD_STACK_BYTES];
    uint32_t stacks[ODD_STACK_BYTES];
    uint32_t depth;
} odd_program;

/* odd_program_below draws a number below `limit`. */
uint32_t odd_program_below(odd_program *made, uint32_t limit);

/* odd_program_first enters at the highest address; then odd_program_next goes on for ever. */
sj_record odd_program_first(odd_program *made);
sj_record odd_program_next(odd_program *made);

#endif
