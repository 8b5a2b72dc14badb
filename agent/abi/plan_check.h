/* The check of a plan before any part of it is used. */
#ifndef SJ_AGENT_ABI_PLAN_CHECK_H
#define SJ_AGENT_ABI_PLAN_CHECK_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stddef.h>

/* sj_plan_check verifies a plan file's bytes: magic, version, crc and every offset and index in it.
 * The agent runs the same checks (it is freestanding: no allocation). */
SJ_MUST_CHECK sj_status sj_plan_check(const void *bytes, size_t size_bytes);

#endif
