/* Whether a recorded process has executed a program that did not join the session.
 *
 * All functions are called by the drain's thread, and none blocks. */
#ifndef SJ_AGENT_DRAIN_OTHER_PROGRAM_H
#define SJ_AGENT_DRAIN_OTHER_PROGRAM_H

#include "agent/drain/process_drain.h"

/* sj_other_program_runs returns true if a living process runs a program that will not join: its
 * memory no longer has the agent, and the agent announced no program that joins. False where that
 * cannot be seen. Makes one system call. */
bool sj_other_program_runs(sj_process_drain *process);

/* sj_other_program_has_run returns true if a process that has ended ended as another program. */
bool sj_other_program_has_run(sj_process_drain *process);

/* sj_other_program_count counts such a program by its reason, unless the agent has. */
void sj_other_program_count(const sj_process_drain *process);

/* Processes that run other programs: how they end is stored, too. */
typedef struct sj_other_programs {
    struct sj_other_program *items; /* owned */
    size_t count;
    size_t capacity;
} sj_other_programs;

/* sj_other_programs_add takes `process->tracked` over, unless memory is short: the end is then not
 * stored. */
void sj_other_programs_add(sj_other_programs *programs, sj_process_drain *process);

/* sj_other_programs_poll reports those that have ended to the registry; errors of its writer. */
SJ_MUST_CHECK sj_status sj_other_programs_poll(sj_other_programs *programs, sj_registry *registry);

void sj_other_programs_deinit(sj_other_programs *programs);

#endif
