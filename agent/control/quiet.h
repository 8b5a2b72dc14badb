/* Whether all threads of a process have left the agent's code for good. None stands in it or will
 * return to it. None is about to call it: one in fork may have taken the address of a fork handler
 * already. And none is in the loader, whose lock the thread that is made to unload the agent would
 * wait for. */
#ifndef SJ_AGENT_CONTROL_QUIET_H
#define SJ_AGENT_CONTROL_QUIET_H

#include "agent/control/remote_agent.h"
#include "agent/control/unwinder.h"

/* Where no thread may be, besides in the agent. */
typedef struct sj_quiet_places {
    sj_remote_range fork;
    uint64_t loader_lock; /* 0: not known */
} sj_quiet_places;

/* sj_quiet_find_places looks them up while threads run. What is not found is empty. */
void sj_quiet_find_places(const sj_target *target, sj_quiet_places *places);

/* sj_quiet_is_reached tells whether that is so. Threads are stopped, the text is restored and the
 * agent's tables are those that were read. */
bool sj_quiet_is_reached(const sj_target *target, const sj_remote_agent *agent,
                         sj_unwinder *unwinder, const sj_quiet_places *places);

#endif
