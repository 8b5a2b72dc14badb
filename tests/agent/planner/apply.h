/* Test support: emits the stubs of a plan with counting probes and writes the patches into the
 * running program. It uses only plan.h, not the planner or a disassembler. */
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

/* Patches the module at `bias`. Returns false if no memory near the module is free, or if the plan
 * is invalid. */
bool apply_plan(const sj_plan_header *header, uint64_t bias, applied_plan *applied);

#endif
