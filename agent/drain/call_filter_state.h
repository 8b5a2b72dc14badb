/* What the files of the filter share: an open call, and times of 48 bits. */
#ifndef SJ_AGENT_DRAIN_CALL_FILTER_STATE_H
#define SJ_AGENT_DRAIN_CALL_FILTER_STATE_H

#include "agent/drain/call_filter.h"

#define SJ_TICKS48_MASK ((UINT64_C(1) << 48) - 1)

/* sj_filter_whole_ticks extends a time of records that were made by `now_ticks`. */
static inline uint64_t sj_filter_whole_ticks(uint64_t now_ticks, uint64_t ticks48)
{
    return now_ticks - ((now_ticks - ticks48) & SJ_TICKS48_MASK);
}

/* sj_filter_age returns the ticks from one 48-bit time to another; 0 for a clock that went back. */
static inline uint64_t sj_filter_age(uint64_t now48, uint64_t then48)
{
    const uint64_t ticks = (now48 - then48) & SJ_TICKS48_MASK;
    return ticks <= SJ_TICKS48_MASK / 2 ? ticks : 0;
}

/* What becomes of an open call. */
typedef enum call_state {
    CALL_PASSED = 0, /* the assembler has its ENTER */
    CALL_HELD = 1,   /* it waits until it has lasted long enough */
    CALL_DROPPED = 2 /* counted only */
} call_state;

struct sj_filtered_call {
    sj_record enter;
    uint64_t stack;
    uint64_t ticks48;
    uint32_t function;
    uint32_t triggers;
    size_t first_value; /* of those that are held back with it */
    size_t value_count; /* their records */
    uint8_t state;      /* call_state */
    uint8_t reason;     /* sj_filter_reason */
    /* By a tail call: it goes on until what it jumped to ends (tail_calls.h). Its exit is passed on
     * in front of the entry of a call that it jumped to; when none of those is passed on, it is
     * passed on as a return, with the time at which the last of them ended. */
    bool has_left;
    bool is_head; /* of its chain */
    bool exit_passed;
    sj_record exit;
};

/* sj_call_filter_request hands a request of the program (SJ_REQUEST_*) to the triggers; without
 * triggers it does nothing. The drain's thread, as below. */
void sj_call_filter_request(sj_call_filter *filter, uint64_t what, uint64_t ticks48);

/* sj_call_filter_mark hands the begin of a mark to the triggers, which may start or stop recording
 * right here. The filter has triggers. */
void sj_call_filter_mark(sj_call_filter *filter, const sj_record *record, uint64_t ticks48);

#endif
