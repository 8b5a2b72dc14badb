/* Receivers: turns the records of methods that name the class of their receiver into records of
 * functions that do. What a class inherits gets a function of its own, -[Receiver:Owner selector],
 * and its entry and exit go by that. One a thread; the drain's thread only.
 *
 * A receiver (SJ_PART_RECEIVER) belongs to the entry of its function at its stack pointer. Handlers
 * may come between the two; after a drop nothing is known of what waits. */
#ifndef SJ_AGENT_DRAIN_RECEIVER_REWRITER_H
#define SJ_AGENT_DRAIN_RECEIVER_REWRITER_H

#include "agent/abi/record.h"
#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"
#include "proto/base/hash_map.h"

enum { SJ_RECEIVER_REWRITER_WAITING = 16 };

typedef struct sj_waiting_value {
    uint32_t function;
    uint32_t stack;  /* low bits */
    uint32_t result; /* the function to record instead */
} sj_waiting_value;

/* Zeroed but for the first three is the right start. */
typedef struct sj_receiver_rewriter {
    sj_registry *registry; /* borrowed; NULL: they are left out and that is all */
    uint64_t process;
    sj_unhooked_set *freed; /* borrowed, learns which functions stand for which; NULL: none */
    sj_waiting_value waiting[SJ_RECEIVER_REWRITER_WAITING]; /* for their entries, innermost last */
    size_t waiting_count;
    sj_hash_map open;  /* by stack pointer: calls whose exit is to be renamed */
    sj_hash_map known; /* by isa and function: what takes its place */
} sj_receiver_rewriter;

void sj_receiver_rewriter_deinit(sj_receiver_rewriter *receivers);

/* sj_receiver_rewriter_are_idle returns whether records without values need not be translated. */
bool sj_receiver_rewriter_are_idle(const sj_receiver_rewriter *receivers);

/* sj_receiver_rewriter_translate changes records in place and leaves the receivers out; `*count` is
 * how many there are. New functions are sent before it returns. SJ_ENOMEM, errors of the frame
 * writer.
 */
SJ_MUST_CHECK sj_status sj_receiver_rewriter_translate(sj_receiver_rewriter *receivers,
                                                       sj_record *records, uint32_t *count,
                                                       uint64_t now_ticks);

#endif
