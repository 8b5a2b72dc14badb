/* The values of a thread that wait for the entry or the exit that they belong to: records of values
 * in, whole values out. A value whose record does not come (a handler was left by longjmp in
 * between) gives way to the next of its kind. One thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_VALUE_QUEUE_H
#define SJ_AGENT_ASSEMBLER_VALUE_QUEUE_H

#include "agent/abi/record.h"
#include "agent/assembler/text_store.h"
#include "proto/block/block.h"

enum { SJ_VALUE_QUEUE = 64 };

typedef struct sj_waiting_call_value {
    uint32_t function;
    uint32_t stack;       /* its bits of SJ_RECORD_VALUE_STACK_MASK */
    uint16_t missing;     /* bytes of its text that are to come */
    bool is_changed;      /* what a rule made of it; `value.rule` is that, and 0 before it is known
                           */
    char *text;           /* of the value, for what is missing; NULL: it has none */
    sj_block_value value; /* call_index is not known yet */
} sj_waiting_call_value;

/* Zeroed is empty. */
typedef struct sj_value_queue {
    size_t count;
    uint64_t lost; /* values that found no room, or of which parts are missing */
    sj_waiting_call_value items[SJ_VALUE_QUEUE]; /* in the order of their records */
    sj_text_store texts;                         /* theirs, and of those that were taken */
} sj_value_queue;

void sj_value_queue_deinit(sj_value_queue *queue);

/* sj_value_queue_clear drops what waits, as lost. */
void sj_value_queue_clear(sj_value_queue *queue);

/* sj_value_queue_put takes a record; false when it is none of a value, or a part of a text whose
 * beginning is not there. */
bool sj_value_queue_put(sj_value_queue *queue, const sj_record *record);

/* sj_value_queue_take gives the next value of a call, in the order of the records: arguments at its
 * entry, results at its exit. Its text is borrowed until the next record. False: there is no (more)
 * whole one; what is not whole is lost. */
bool sj_value_queue_take(sj_value_queue *queue, uint32_t function, uint64_t stack, bool at_entry,
                         sj_block_value *value);

#endif
