/* Fingerprints: hashes of functions' code that do not depend on addresses. */
#ifndef SJ_AGENT_PLANNER_FINGERPRINT_H
#define SJ_AGENT_PLANNER_FINGERPRINT_H

#include "agent/planner/module.h"

/* Writes a hash of the instructions of each range to `fingerprints`, which has module->range_count
 * elements. Call it after sj_module_find_targets. Addresses outside of the range do not affect the
 * hash. Callees affect it in short ranges, and in ranges whose instructions equal those of another
 * range. The result is 0 in three cases:
 *   * the range has a name
 *   * its code is not decodable
 *   * its code is short and calls no known function, so unrelated functions would have the same
 *     hash
 *
 * Returns SJ_ENOMEM if out of memory. Thread-safe while no thread changes the module; does not
 * block. */
SJ_MUST_CHECK sj_status sj_fingerprints_of(const sj_module *module, uint64_t *fingerprints);

#endif
