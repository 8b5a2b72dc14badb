/* Measures how much of a module's code lies in functions that the plan knows. */
#ifndef SJ_AGENT_PLANNER_TEXT_COVERAGE_H
#define SJ_AGENT_PLANNER_TEXT_COVERAGE_H

#include "agent/abi/plan.h"

#include <stdbool.h>

/* Up to this many bytes between functions are padding. */
enum { SJ_TEXT_PADDING_BYTES = 63 };

typedef struct sj_text_coverage {
    uint64_t text_bytes;    /* of all executable sections */
    uint64_t unknown_bytes; /* in no function, and not padding between functions */
} sj_text_coverage;

/* Measures a checked plan. */
sj_text_coverage sj_text_coverage_of(const sj_plan_header *plan);

/* True if so much is unknown (4 KiB and a tenth) that a user would miss calls. */
bool sj_text_coverage_is_poor(sj_text_coverage coverage);

#endif
