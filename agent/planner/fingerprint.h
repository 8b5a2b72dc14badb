/* What a function's code does, as a number that stays the same when it lies elsewhere. */
#ifndef SJ_AGENT_PLANNER_FINGERPRINT_H
#define SJ_AGENT_PLANNER_FINGERPRINT_H

#include "agent/planner/module.h"

/* sj_fingerprints_of fills in a hash of the instructions of each range of a module that
 * sj_module_find_targets has disassembled; `fingerprints` has room for module->range_count.
 * Addresses of code and data outside of the range do not count. Of short ranges, and of those that
 * share their instructions with others, what they call counts, too. 0: the range has a name, or its
 * code is not known, or so short that functions with different purposes have it. SJ_ENOMEM. Thread
 * safe for modules that no thread changes; does not block. */
SJ_MUST_CHECK sj_status sj_fingerprints_of(const sj_module *module, uint64_t *fingerprints);

#endif
