/* What a function's code does, as a number that stays the same when it lies elsewhere. */
#ifndef SJ_AGENT_PLANNER_FINGERPRINT_H
#define SJ_AGENT_PLANNER_FINGERPRINT_H

#include "agent/planner/module.h"

/* sj_fingerprint_of returns a hash of the instructions of a range that sj_module_find_targets has
 * disassembled. Addresses of code and data outside of the range do not count. 0: the code is not
 * known, or is so short that functions with different purposes have it. */
uint64_t sj_fingerprint_of(const sj_module *module, const sj_code_range *range);

#endif
