/* Applies another selection of functions to a running process. Hooks the wanted functions and
 * unhooks all others in one stop. Before the stop, while the process runs, the agent makes hooks
 * that are missing. The process was launched or attached to. */
#ifndef SJ_AGENT_LIVEPATCH_TRANSITION_H
#define SJ_AGENT_LIVEPATCH_TRANSITION_H

#include "agent/livepatch/unhooked_set.h"
#include "agent/registry/registry.h"

typedef struct sj_transition_report {
    uint64_t stopped_ns; /* How long all threads were stopped. */
    size_t hooked_count; /* Functions that were hooked. */
    size_t freed_count;  /* Functions that were unhooked. */
    /* Wanted functions without hooks, ascending, also of modules that are not mapped. Owned by the
     * report. Set only after a success. */
    uint32_t *missed;
    size_t missed_count;
    size_t kept_count; /* Unwanted functions that could not be unhooked. */
    /* Functions whose hooks could not be replaced, so that they record as before. */
    size_t stale_count;
    /* True if a thread waits in the loader, which may make a call bypass its hook. */
    bool is_unsure;
} sj_transition_report;

/* Makes process number `process` of the session, whose pid is `pid`, follow `states`
 * (sj_registry_select). Updates `freed`, unless NULL, while the process is stopped. The link must
 * be served meanwhile. Blocks while new modules are planned. Only a thread that may trace the
 * process calls it. The caller releases the report with sj_transition_report_deinit, also after an
 * error. Returns SJ_ENOTFOUND if the process has no agent, SJ_EAGAIN if it loads modules all the
 * time, and SJ_ECLOSED if it has ended. Also returns SJ_EPERM, SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_transition_process(sj_registry *registry, uint64_t process, pid_t pid,
                                              const sj_function_states *states,
                                              sj_unhooked_set *freed, sj_transition_report *report,
                                              sj_error *error);
void sj_transition_report_deinit(sj_transition_report *report);

#endif
