/* Stores the values of a call at its entry and at its exit. Evaluates the rules that keep them,
 * converts them by the function's types, and computes what the call has cost. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_CALL_VALUES_H
#define SJ_AGENT_ASSEMBLER_CALL_VALUES_H

#include "agent/assembler/call_stack.h"
#include "agent/assembler/value_queue.h"

/* An entry or an exit. */
typedef struct sj_valued_moment {
    uint64_t call_index;
    uint64_t stack; /* stack address in its record */
    uint64_t ticks;
    uint32_t function;
    bool at_entry;
} sj_valued_moment;

/* Moves the values of a call that has just been entered or left from the queue to the stream.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_values_store(sj_call_stack *stream, sj_value_queue *queue,
                                             const sj_valued_moment *moment);

#endif
