/* Filters of system calls (seccomp) that the program sets for itself: the agent makes no call from
 * then on, and leaves before strict mode, which takes the clock away as well. */
#ifndef SJ_AGENT_INPROC_CORE_FILTERS_H
#define SJ_AGENT_INPROC_CORE_FILTERS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* sj_filters_follow watches libc's prctl and syscall. SJ_EUNSUPPORTED when their code is not as
 * expected: then filters are only found by the recorder, which looks from time to time. Before the
 * program's first thread is started, or, in an attached process, before a tracer writes the text.
 */
SJ_MUST_CHECK sj_status sj_filters_follow(void);

/* sj_filters_on_call is called by the gates in front of a system call of the program, which may
 * also be one that runs another program (exec.h). False: the call is not to be made, but answered
 * with EINVAL. */
bool sj_filters_on_call(uint64_t number, uint64_t first, uint64_t second, uint64_t third,
                        uint64_t fourth, uint64_t fifth);

#endif
