/* The receiver rewriter: some Objective-C methods record the class of their receiver. If the
 * receiver's class inherits the method, the rewriter gives the call's records another function,
 * -[Receiver:Owner selector]. One for each thread; used by the drain's thread only.
 *
 * A receiver value (SJ_PART_RECEIVER) belongs to the entry of its function at its stack pointer.
 * Records of signal handlers may lie between the value and the entry. After dropped records the
 * waiting values are discarded. */
#ifndef SJ_AGENT_DRAIN_RECEIVER_REWRITER_H
#define SJ_AGENT_DRAIN_RECEIVER_REWRITER_H

#include "agent/abi/record.h"
#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"
#include "proto/base/hash_map.h"

enum { SJ_RECEIVER_REWRITER_WAITING = 16 };

typedef struct sj_waiting_value {
    uint32_t function;
    uint32_t stack;  /* low bits of the stack pointer */
    uint32_t result; /* the function to record instead */
} sj_waiting_value;

/* Set the first three members and zero the others. */
typedef struct sj_receiver_rewriter {
    /* borrowed; NULL: receiver values are removed, functions stay as they are */
    sj_registry *registry;
    uint64_t process;
    sj_unhooked_set *freed; /* borrowed; gets the replaced functions; NULL: none */
    /* values that wait for their entries, innermost last */
    sj_waiting_value waiting[SJ_RECEIVER_REWRITER_WAITING];
    size_t waiting_count;
    sj_hash_map open;  /* by stack pointer: calls whose exit must be rewritten */
    sj_hash_map known; /* by isa and function: the function to record instead */
} sj_receiver_rewriter;

void sj_receiver_rewriter_deinit(sj_receiver_rewriter *receivers);

/* True if no call or value waits, so that records without values can bypass the rewriter. */
bool sj_receiver_rewriter_are_idle(const sj_receiver_rewriter *receivers);

/* Rewrites records in place and removes the receiver values. `*count` is the number of records, in
 * and out. Sends new functions before it returns. Returns SJ_ENOMEM and errors of the frame
 * writer. */
SJ_MUST_CHECK sj_status sj_receiver_rewriter_translate(sj_receiver_rewriter *receivers,
                                                       sj_record *records, uint32_t *count,
                                                       uint64_t now_ticks);

#endif
