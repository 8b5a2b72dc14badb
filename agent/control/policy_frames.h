/* Frames about policies. */
#ifndef SJ_AGENT_CONTROL_POLICY_FRAMES_H
#define SJ_AGENT_CONTROL_POLICY_FRAMES_H

#include "agent/control/emitter.h"
#include "agent/policy/policy.h"

/* sj_policy_frame_send tells what a session records from `ticks` on; `number` counts the policies
 * of the session, from 1; `not_applied` is a JSON list, "" when all was. Sent again, it is updated.
 */
SJ_MUST_CHECK sj_status sj_policy_frame_send(sj_emitter *emitter, uint64_t number,
                                             const sj_policy *policy, uint64_t ticks,
                                             const char *not_applied);

#endif
