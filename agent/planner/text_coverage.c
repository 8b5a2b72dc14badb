#include "agent/planner/text_coverage.h"

/* Returns the bytes from `from` to `to`, or 0 if they are padding. */
static uint64_t gap(uint64_t from, uint64_t to)
{
    return to > from && to - from > SJ_TEXT_PADDING_BYTES ? to - from : 0;
}

sj_text_coverage sj_text_coverage_of(const sj_plan_header *plan)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    sj_text_coverage coverage = {.text_bytes = plan->text_high - plan->text_low};
    uint64_t end = plan->text_low;
    for (uint32_t i = 0; i < plan->function_count && functions[i].source != SJ_SYMBOL_IMPORT; i++) {
        const uint64_t function_end = functions[i].offset + functions[i].size;
        coverage.unknown_bytes += gap(end, functions[i].offset);
        end = function_end > end ? function_end : end;
    }
    coverage.unknown_bytes += gap(end, plan->text_high);
    return coverage;
}

bool sj_text_coverage_is_poor(sj_text_coverage coverage)
{
    enum { LEAST_BYTES = 4096, LEAST_SHARE = 10 };
    return coverage.unknown_bytes >= LEAST_BYTES &&
           coverage.unknown_bytes * LEAST_SHARE >= coverage.text_bytes;
}
