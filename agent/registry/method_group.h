/* Makes a group of methods of a dynamic runtime into a plan without code, from which module frames
 * are made. */
#ifndef SJ_AGENT_REGISTRY_METHOD_GROUP_H
#define SJ_AGENT_REGISTRY_METHOD_GROUP_H

#include "agent/abi/plan.h"
#include "agent/policy/selection.h"
#include "proto/base/cursor.h"

enum { SJ_METHOD_GROUP_MAX = 4096 };

/* Makes a plan whose functions are the `count` NUL-terminated names. A function is left out if the
 * selection (NULL: none) excludes it, or if wanted[i] was 0. Afterwards wanted[i] is 0 for all
 * left-out functions. A runtime reports the other functions.
 *
 * A hash of `path` and names identifies the plan. The caller frees it. SJ_ECORRUPT: the bytes do
 * not hold `count` names. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_group_make(const sj_selection *selection, const char *path,
                                             sj_slice names, uint32_t count, uint8_t *wanted,
                                             sj_plan_header **group);

/* Returns the ELF machine of methods that run on this machine. */
uint16_t sj_method_group_machine(void);

#endif
