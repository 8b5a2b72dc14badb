/* A group of methods of a dynamic runtime as a plan without code: what module frames are made of.
 */
#ifndef SJ_AGENT_REGISTRY_METHOD_GROUP_H
#define SJ_AGENT_REGISTRY_METHOD_GROUP_H

#include "agent/abi/plan.h"
#include "agent/policy/selection.h"
#include "proto/base/cursor.h"

enum { SJ_METHOD_GROUP_MAX = 4096 };

/* sj_method_group_make lays the `count` NUL-terminated names out as functions reported by a runtime
 * or left out: by the selection (NULL: nothing is), or because wanted[i] was 0; wanted[i] is 0 for
 * both afterwards. Its identity is a hash of `path` and names. The caller frees it. SJ_ECORRUPT
 * when the bytes are not so many names, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_group_make(const sj_selection *selection, const char *path,
                                             sj_slice names, uint32_t count, uint8_t *wanted,
                                             sj_plan_header **group);

/* sj_method_group_machine is the ELF machine of methods that run on this one. */
uint16_t sj_method_group_machine(void);

#endif
