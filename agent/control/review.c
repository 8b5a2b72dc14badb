#include "agent/control/review.h"

#include "agent/control/attach_parts.h"

sj_status sj_review(sj_target *target, const sj_remote_agent *agent, sj_error *error)
{
    sj_unwinder *unwinder = NULL;
    size_t thread = 0;
    if (sj_unwinder_new(target, &unwinder) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "the modules of process %d cannot be read", (int)target->pid);
    }
    sj_status status = sj_safe_point_find(target, unwinder, &thread);
    if (status == SJ_OK) {
        status = sj_attach_call_agent(target, agent, thread, SJ_FACE_REVIEW);
        sj_target_resume_all(target);
    }
    sj_unwinder_free(unwinder);
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "process %d cannot prepare more hooks now: %s",
                                     (int)target->pid, sj_status_text(status));
}
