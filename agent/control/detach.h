/* Leaving a process, whoever records it: the recording that is under way is ended as its user would
 * end it, and what a killed recorder left is cleaned up. */
#ifndef SJ_AGENT_CONTROL_DETACH_H
#define SJ_AGENT_CONTROL_DETACH_H

#include "agent/control/attach.h"

typedef struct sj_detach_report {
    sj_recorded recorded; /* as it was found; `has_agent` false: nothing was to do */
    sj_leave_report leave;
} sj_detach_report;

/* sj_detach leaves a process. Blocking, up to half a minute. SJ_ENOTFOUND: no such process;
 * SJ_EPERM; SJ_EUNSUPPORTED: it was launched by a recorder that lives and records it to its end;
 * SJ_ETIMEDOUT: its recorder does not end; errors of sj_attach_leave. */
SJ_MUST_CHECK sj_status sj_detach(pid_t pid, sj_detach_report *report, sj_error *error);

#endif
