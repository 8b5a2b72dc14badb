/* The command `detach`: ends the recording of a process as its user would, or cleans up after a
 * recorder that was killed. */
#ifndef SJ_AGENT_ATTACH_DETACH_REQUEST_H
#define SJ_AGENT_ATTACH_DETACH_REQUEST_H

#include "agent/attach/detach.h"

typedef struct sj_detach_report {
    sj_recorded recorded; /* State before. If `has_agent` is false, there was nothing to do. */
    sj_detach_process_report process;
} sj_detach_report;

/* Detaches from a process. Blocks for up to 30 s to wait for the recorder, then as long as
 * sj_detach_process. Returns SJ_ENOTFOUND if the process does not exist, or SJ_EPERM. Returns
 * SJ_EUNSUPPORTED if a living recorder launched it and records it to its end. Returns SJ_ETIMEDOUT
 * if its recorder does not reply or does not end, SJ_EPERM if its recorder may not be signalled by
 * this user. Also returns errors of sj_detach_process. */
SJ_MUST_CHECK sj_status sj_detach(pid_t pid, sj_detach_report *report, sj_error *error);

#endif
