/* A batch: records of one thread, on their way from the chunk reader through the stages to the
 * assembler. */
#ifndef SJ_AGENT_DRAIN_RECORD_BATCH_H
#define SJ_AGENT_DRAIN_RECORD_BATCH_H

#include "agent/abi/record.h"

typedef struct sj_record_batch {
    sj_record *records; /* borrowed; a stage may change them in place */
    uint32_t count;
    uint64_t now_ticks; /* not earlier than any of the records */
    bool has_shorts;    /* some places may hold short records */
    bool has_values;
    bool has_request; /* a note is a request of the program */
    /* calls and events that are missing after these records, for example torn ones */
    uint64_t lost_calls;
    uint64_t lost_events;
} sj_record_batch;

#endif
