/* The command `detach`: ends the recording of a process as its user would, or cleans up after a
 * recorder that was killed. */
#ifndef SJ_AGENT_ATTACH_DETACH_REQUEST_H
#define SJ_AGENT_ATTACH_DETACH_REQUEST_H

#include "agent/attach/detach.h"

typedef struct sj_detach_report {
    sj_recorded recorded; /* as found; `has_agent` false: there was nothing to do */
    sj_detach_process_report process;
} sj_detach_report;

/* sj_detach detaches from a process. Blocking, up to half a minute. SJ_ENOTFOUND: no such process;
 * SJ_EPERM; SJ_EUNSUPPORTED: it was launched by a recorder that lives and records it to its end;
 * SJ_ETIMEDOUT: its recorder does not end; errors of sj_detach_process. */
SJ_MUST_CHECK sj_status sj_detach(pid_t pid, sj_detach_report *report, sj_error *error);

#endif
