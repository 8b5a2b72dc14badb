/* Measures how much of a module's code lies in functions that the plan knows. */
#ifndef SJ_AGENT_PLANNER_TEXT_COVERAGE_H
#define SJ_AGENT_PLANNER_TEXT_COVERAGE_H

#include "agent/abi/plan.h"

#include <stdbool.h>

/* Up to this many bytes between functions are padding. */
enum { SJ_TEXT_PADDING_BYTES = 63 };

typedef struct sj_text_coverage {
    uint64_t text_bytes;    /* size of the module's text */
    uint64_t unknown_bytes; /* bytes outside of all functions, except padding between functions */
} sj_text_coverage;

/* Returns the coverage of a plan that has passed sj_plan_check. */
sj_text_coverage sj_text_coverage_of(const sj_plan_header *plan);

/* True if at least 4 KiB and a tenth of the text are unknown, so that many calls would be
 * missing. */
bool sj_text_coverage_is_poor(sj_text_coverage coverage);

#endif
