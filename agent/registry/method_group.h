/* Makes a plan from the names of a group of methods of a dynamic runtime. The plan has no code. It
 * serves to send the module's frames. */
#ifndef SJ_AGENT_REGISTRY_METHOD_GROUP_H
#define SJ_AGENT_REGISTRY_METHOD_GROUP_H

#include "agent/abi/plan.h"
#include "agent/policy/selection.h"
#include "proto/base/cursor.h"

enum { SJ_METHOD_GROUP_MAX = 4096 };

/* Makes a plan whose functions are the `count` NUL-terminated names. On entry, wanted[i] is 0 if
 * method i is not to be recorded. On return, wanted[i] is also 0 if the selection (NULL: none)
 * excludes the method. The runtime records the methods whose wanted[i] is not 0.
 *
 * A hash of `path` and the names is the plan's build-id. The caller frees `*group`. Returns
 * SJ_ECORRUPT if `names` does not contain `count` names, or `count` is 0 or greater than
 * SJ_METHOD_GROUP_MAX. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_method_group_make(const sj_selection *selection, const char *path,
                                             sj_slice names, uint32_t count, uint8_t *wanted,
                                             sj_plan_header **group);

/* Returns the ELF machine of methods that run on this machine. */
uint16_t sj_method_group_machine(void);

#endif
