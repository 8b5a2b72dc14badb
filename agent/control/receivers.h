/* Receivers: turns the records of methods that name the class of their receiver into records of
 * functions that do. What a class inherits gets a function of its own, -[Receiver:Owner selector],
 * and its entry and exit go by that. One a thread; the drain's thread only.
 *
 * A receiver (SJ_PART_RECEIVER) belongs to the entry of its function at its stack pointer. Handlers
 * may come between the two; after a drop nothing is known of what waits. */
#ifndef SJ_AGENT_CONTROL_RECEIVERS_H
#define SJ_AGENT_CONTROL_RECEIVERS_H

#include "agent/control/freed.h"
#include "agent/control/pair_map.h"
#include "agent/control/roster.h"
#include "agent/recorder/record.h"

enum { SJ_RECEIVERS_WAITING = 16 };

typedef struct sj_waiting_value {
    uint32_t function;
    uint32_t stack;  /* low bits */
    uint32_t result; /* the function to record instead */
} sj_waiting_value;

/* Zeroed but for the first three is the right start. */
typedef struct sj_receivers {
    sj_roster *roster; /* borrowed; NULL: they are left out and that is all */
    uint64_t process;
    sj_freed *freed; /* borrowed, told which functions stand for which; NULL: nobody is */
    sj_waiting_value waiting[SJ_RECEIVERS_WAITING]; /* for their entries, innermost last */
    size_t waiting_count;
    sj_pair_map open;  /* by stack pointer: calls whose exit is to be renamed */
    sj_pair_map known; /* by isa and function: what takes its place */
} sj_receivers;

void sj_receivers_deinit(sj_receivers *receivers);

/* sj_receivers_are_idle tells whether records without values need not be translated. */
bool sj_receivers_are_idle(const sj_receivers *receivers);

/* sj_receivers_translate changes records in place and leaves the receivers out; `*count` is how
 * many there are. New functions are sent before it returns. SJ_ENOMEM, errors of the emitter. */
SJ_MUST_CHECK sj_status sj_receivers_translate(sj_receivers *receivers, sj_record *records,
                                               uint32_t *count, uint64_t now_ticks);

#endif
