/* Filters of system calls (seccomp) that the program sets for itself. From then on the agent makes
 * no system calls. In strict mode, reading the clock ends the thread. So if the thread is the only
 * one of a launched process, the agent restores the text and stops recording before strict mode
 * begins. Otherwise strict mode is refused. */
#ifndef SJ_AGENT_INPROC_CORE_FILTERS_H
#define SJ_AGENT_INPROC_CORE_FILTERS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Watches libc's prctl and syscall. Returns SJ_EUNSUPPORTED if their code is not as expected: then
 * only the recorder finds filters, by polling. Call it before the program's first thread starts. In
 * an attached process, call it before a tracer writes the text. */
SJ_MUST_CHECK sj_status sj_filters_follow(void);

/* The gates call it before a system call of the program. It also handles calls that run another
 * program (exec.h). Returns false if the call must not be made: the program gets EINVAL. */
bool sj_filters_on_call(uint64_t number, uint64_t first, uint64_t second, uint64_t third,
                        uint64_t fourth, uint64_t fifth);

#endif
