/* Detects that a recorded process has executed a program that did not join the session.
 *
 * All functions are called by the drain's thread and do not block. */
#ifndef SJ_AGENT_DRAIN_OTHER_PROGRAM_H
#define SJ_AGENT_DRAIN_OTHER_PROGRAM_H

#include "agent/drain/process_drain.h"

/* True if a living process runs a program that will not join: the agent is no longer in its memory,
 * and had announced no program that joins. False if that cannot be determined, and always in direct
 * mode (`threadless`). Makes a few system calls. */
bool sj_other_program_runs(sj_process_drain *process);

/* True if a process that has ended was running another program at its end. */
bool sj_other_program_has_run(sj_process_drain *process);

/* Counts the program that did not join, unless the agent has counted it: as SJ_UNRECORDED_UNSEEN if
 * the agent announced no program, else as SJ_UNRECORDED_UNKNOWN. */
void sj_other_program_count(const sj_process_drain *process);

/* Processes that run other programs. The drain waits for their end and stores their exit status. */
typedef struct sj_other_programs {
    struct sj_other_program *items; /* owned */
    size_t count;
    size_t capacity;
} sj_other_programs;

/* Adds a process and takes ownership of `process->tracked`. If out of memory, changes nothing: the
 * end of the process is then not stored. */
void sj_other_programs_add(sj_other_programs *programs, sj_process_drain *process);

/* Reports the processes that have ended to the registry. Returns the errors of its writer. */
SJ_MUST_CHECK sj_status sj_other_programs_poll(sj_other_programs *programs, sj_registry *registry);

void sj_other_programs_deinit(sj_other_programs *programs);

#endif
