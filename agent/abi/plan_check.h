/* Checks a plan before it is used. */
#ifndef SJ_AGENT_ABI_PLAN_CHECK_H
#define SJ_AGENT_ABI_PLAN_CHECK_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stddef.h>

/* Checks the bytes of a plan file: magic, version, CRC, and every offset and index. Returns
 * SJ_ECORRUPT or SJ_EVERSION. The agent runs it, too, so it is freestanding and does not allocate.
 */
SJ_MUST_CHECK sj_status sj_plan_check(const void *bytes, size_t size_bytes);

#endif
