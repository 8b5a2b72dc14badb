/* Internal header of the call filter: the state of an open call. */
#ifndef SJ_AGENT_DRAIN_CALL_FILTER_STATE_H
#define SJ_AGENT_DRAIN_CALL_FILTER_STATE_H

#include "agent/drain/call_filter.h"
#include "agent/drain/record_ticks.h"

/* Action of the filter for an open call. */
typedef enum call_state {
    CALL_PASSED = 0, /* the assembler got its entry */
    CALL_HELD = 1,   /* the call waits until it has lasted long enough */
    CALL_DROPPED = 2 /* the call is only counted */
} call_state;

struct sj_filtered_call {
    sj_record enter;
    uint64_t stack;
    uint64_t ticks48;
    uint32_t function;
    uint32_t triggers;
    size_t first_value; /* index of its first held value */
    size_t value_count; /* number of its held value records */
    uint8_t state;      /* a call_state */
    uint8_t reason;     /* a sj_filter_reason */
    /* True if the call has left by a tail call (tail_calls.h). It stays open until the function
     * that it jumped to ends.
     *
     * The filter passes its exit on before the entry of a kept call that it jumped to. If the
     * filter keeps none of those calls, it passes the exit on as a return, at the end of the
     * chain. */
    bool has_left;
    bool is_head; /* the call is the head of its chain */
    bool exit_passed;
    sj_record exit;
};

/* Passes a request of the program (SJ_REQUEST_*) to the triggers. Does nothing without triggers.
 * Called by the drain's thread. */
void sj_call_filter_request(sj_call_filter *filter, uint64_t what, uint64_t ticks48);

/* Passes the begin of a mark to the triggers, which may start or stop the recording at this record.
 * The filter must have triggers. Called by the drain's thread. */
void sj_call_filter_mark(sj_call_filter *filter, const sj_record *record, uint64_t ticks48);

#endif
