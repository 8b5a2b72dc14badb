/* Replies to an agent that requests a plan of generated code. */
#ifndef SJ_AGENT_LINK_CODE_REPLY_H
#define SJ_AGENT_LINK_CODE_REPLY_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

/* Handles a CODE packet and plans its functions. Their code is in `file` or, if `file` is -1, in
 * the payload. Returns SJ_ECORRUPT, and errors of sj_registry_plan_generated. */
SJ_MUST_CHECK sj_status sj_link_plan_code(sj_registry *registry, uint64_t process,
                                          sj_reader *reader, int file, sj_plan_reply *reply);

#endif
