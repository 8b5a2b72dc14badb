/* Values: what a policy asks of the arguments and results of a function, written by its probes in
 * front of the entry or the exit. Any thread, also in handlers. */
#ifndef SJ_AGENT_RECORDER_VALUES_H
#define SJ_AGENT_RECORDER_VALUES_H

#include "proto/value.h"

enum {
    SJ_VALUE_SHIFT_BIT = 30, /* of the first word below: integer arguments before number 1 */
    SJ_VALUE_REGISTERS = 8
};

/* What the gate of the stubs has found in the registers that values are passed in. The assembly
 * knows the layout. */
typedef struct sj_value_registers {
    uint64_t whole[SJ_VALUE_REGISTERS];
    uint64_t real[SJ_VALUE_REGISTERS]; /* low halves; the first is a result, too */
    uint64_t result;
} sj_value_registers;

/* sj_recorder_values records what the descriptors, one a byte, lowest first, ask for. `function` is
 * its id and, in the two highest bits, the shift; `stack` the stack pointer of the records. A text
 * is read by a system call, so that a pointer that leads nowhere does no harm. Async-signal-safe;
 * errno stays. */
void sj_recorder_values(uint32_t function, uint32_t descriptors, uint64_t stack,
                        const sj_value_registers *registers);

#endif
