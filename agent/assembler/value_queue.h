/* Value queue: reads value records of a thread and keeps the values until the entry or exit that
 * they belong to. If a longjmp leaves a signal handler before the entry or exit is recorded, the
 * value stays in the queue. The next value of the same function, stack address and descriptor
 * replaces it. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_VALUE_QUEUE_H
#define SJ_AGENT_ASSEMBLER_VALUE_QUEUE_H

#include "agent/abi/record.h"
#include "agent/assembler/text_store.h"
#include "proto/block/block.h"

enum { SJ_VALUE_QUEUE = 64 };

typedef struct sj_waiting_call_value {
    uint32_t function;
    uint32_t stack;   /* stack address of the record, masked by SJ_RECORD_VALUE_STACK_MASK */
    uint16_t missing; /* bytes of its text that have not arrived */
    /* True if a rule changed the value. `value.rule` is that rule, or 0 until its record
     * arrives. */
    bool is_changed;
    char *text;           /* the value's text while parts are missing; NULL: it has no text */
    sj_block_value value; /* call_index is not set */
} sj_waiting_call_value;

/* All zero: empty. */
typedef struct sj_value_queue {
    size_t count;
    /* values that were dropped because the queue was full, or because parts of them were missing */
    uint64_t lost;
    sj_waiting_call_value items[SJ_VALUE_QUEUE]; /* in the order of their records */
    sj_text_store texts;                         /* texts of waiting and of popped values */
} sj_value_queue;

void sj_value_queue_deinit(sj_value_queue *queue);

/* Removes all waiting values and counts them as lost. */
void sj_value_queue_clear(sj_value_queue *queue);

/* Adds a record. Returns false if the record is malformed, if the first record of its value is
 * missing, or if memory is lacking. */
bool sj_value_queue_add(sj_value_queue *queue, const sj_record *record);

/* Removes the next value of a call, in the order of the records: arguments at its entry, results at
 * its exit. Its text is borrowed until the next record is added. Returns false if no complete value
 * is left. Incomplete values are removed and counted as lost. */
bool sj_value_queue_pop(sj_value_queue *queue, uint32_t function, uint64_t stack, bool at_entry,
                        sj_block_value *value);

#endif
