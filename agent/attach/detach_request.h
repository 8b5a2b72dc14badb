/* The command `detach`: ends the recording of a process by asking its recorder, or cleans up after
 * a recorder that was killed. */
#ifndef SJ_AGENT_ATTACH_DETACH_REQUEST_H
#define SJ_AGENT_ATTACH_DETACH_REQUEST_H

#include "agent/attach/detach.h"

typedef struct sj_detach_report {
    sj_recorded recorded; /* State before. If `has_agent` is false, there was nothing to do. */
    sj_detach_process_report process;
} sj_detach_report;

/* Detaches from a process. Blocking: waits up to 30 s for the recorder, then as sj_detach_process.
 * Returns SJ_ENOTFOUND if the process does not exist. Returns SJ_EPERM if this user may not trace
 * the process, or may not signal its recorder. Returns SJ_EUNSUPPORTED if a living recorder
 * launched the process and records it to its end. Returns SJ_ETIMEDOUT if the recorder does not
 * reply or does not end. Also returns errors of sj_detach_process. */
SJ_MUST_CHECK sj_status sj_detach(pid_t pid, sj_detach_report *report, sj_error *error);

#endif
