/* Reselecting: another selection of functions for a running process. Functions that are wanted now
 * are hooked, those that are not are unhooked, all of them in one stop; hooks that the agent has
 * not made yet it makes before, while the process runs. Works for processes that were launched and
 * for those that were attached to. */
#ifndef SJ_AGENT_LIVEPATCH_TRANSITION_H
#define SJ_AGENT_LIVEPATCH_TRANSITION_H

#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"

typedef struct sj_transition_report {
    uint64_t stopped_ns; /* all threads */
    size_t hooked_count; /* functions that have become hooked */
    size_t freed_count;  /* that have become free */
    uint32_t *missed;    /* that are wanted and have no hooks, ascending; also of modules that are
                            not mapped; owned by the report. Of a success only */
    size_t missed_count;
    size_t kept_count;  /* functions that are not wanted and could not be unhooked */
    size_t stale_count; /* that record what they did before: their hooks could not make way */
    bool is_unsure;     /* a thread waits in the loader, which may lead a call past its hook */
} sj_transition_report;

/* sj_transition_process makes the process number `process` of the session, whose pid is `pid`, obey
 * `states` (sj_registry_select), and updates `freed`, unless NULL, while it is stopped. The link
 * must be served meanwhile. Blocking: the time that planning of new modules takes. One thread,
 * which may trace the process. Release the report with sj_transition_report_deinit, also after a
 * failure. SJ_ENOTFOUND no agent is in it, SJ_EPERM, SJ_EAGAIN it loads modules all the time,
 * SJ_ECLOSED it has ended, SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_transition_process(sj_registry *registry, uint64_t process, pid_t pid,
                                              const sj_function_states *states,
                                              sj_unhooked_set *freed, sj_transition_report *report,
                                              sj_error *error);
void sj_transition_report_deinit(sj_transition_report *report);

#endif
