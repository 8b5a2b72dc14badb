#include "agent/control/policy_frames.h"

#include <stdint.h>

enum { PPM_A_PERCENT = 10000 };

sj_status sj_policy_frame_send(sj_emitter *emitter, uint64_t number, const sj_policy *policy,
                               uint64_t ticks, const char *not_applied)
{
    const sj_slice no_payload = {0};
    Sojourn__Policy message = SOJOURN__POLICY__INIT;
    message.session_id = sj_emitter_session_bytes(emitter);
    message.policy = number;
    message.name = (char *)(uintptr_t)policy->name;
    message.version = policy->version;
    message.mode = (char *)(uintptr_t)sj_policy_mode_text(policy->mode);
    message.budget_ppm = (uint32_t)(policy->budget_percent * PPM_A_PERCENT + 0.5);
    message.document = policy->document;
    message.ticks = ticks;
    message.not_applied = (char *)(uintptr_t)not_applied;
    return sj_emitter_send(emitter, SJ_FRAME_POLICY, &message.base, no_payload);
}
