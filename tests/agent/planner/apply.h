/* A small applier of plans for tests: emits the stubs of a plan with counting probes and writes the
 * patches into the running program. It knows plan.h only: no disassembler, nothing of the planner.
 */
#ifndef SJ_TESTS_AGENT_PLANNER_APPLY_H
#define SJ_TESTS_AGENT_PLANNER_APPLY_H

#include "agent/abi/plan.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct applied_plan {
    uint64_t *entries; /* per function */
    uint64_t *exits;
    uint32_t function_count;
    uint32_t refused; /* patches whose original bytes differed */
} applied_plan;

/* apply_plan patches the module at `bias`. false: no memory near, or a plan that cannot be right.
 */
bool apply_plan(const sj_plan_header *header, uint64_t bias, applied_plan *applied);

#endif
