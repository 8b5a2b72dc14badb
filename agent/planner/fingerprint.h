/* Fingerprints: a number for the code of a function that does not depend on its address. */
#ifndef SJ_AGENT_PLANNER_FINGERPRINT_H
#define SJ_AGENT_PLANNER_FINGERPRINT_H

#include "agent/planner/module.h"

/* Computes a hash of the instructions of each range of a module, after sj_module_find_targets.
 * `fingerprints` holds module->range_count numbers. Addresses of code and data outside the range do
 * not count. Callees count in short ranges, and in ranges whose instructions equal those of
 * another. The result is 0 if the range has a name, or if its code is unknown. It is
 * also 0 if the code is so short that unrelated functions share it. SJ_ENOMEM. Thread-safe while no
 * thread changes the module; does not block. */
SJ_MUST_CHECK sj_status sj_fingerprints_of(const sj_module *module, uint64_t *fingerprints);

#endif
