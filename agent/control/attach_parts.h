/* What attaching and leaving share. */
#ifndef SJ_AGENT_CONTROL_ATTACH_PARTS_H
#define SJ_AGENT_CONTROL_ATTACH_PARTS_H

#include "agent/control/attach.h"
#include "agent/control/remote_agent.h"
#include "agent/control/safe_point.h"

/* A stop of all threads: when it began, by the wall and by this thread's own time. */
typedef struct sj_stop_clock {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} sj_stop_clock;

/* sj_stop_clock_start starts the clock; sj_stop_clock_read replaces both times by what has passed.
 */
void sj_stop_clock_start(sj_stop_clock *clock);
void sj_stop_clock_read(sj_stop_clock *clock);

/* sj_attach_find_function looks up an exported function of the C library. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_attach_find_function(const sj_target *target, const char *name,
                                                uint64_t *function);

/* sj_attach_find_restorer gives the return address of signal handlers; 0: not found. */
uint64_t sj_attach_find_restorer(const sj_target *target);

/* sj_attach_call_agent makes a stopped thread call an exported function of the agent. */
SJ_MUST_CHECK sj_status sj_attach_call_agent(sj_target *target, const sj_remote_agent *agent,
                                             size_t thread, const char *name);

#endif
