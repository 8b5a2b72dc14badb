/* Whether the threads of a process have to do with the agent. */
#ifndef SJ_AGENT_CONTROL_QUIET_H
#define SJ_AGENT_CONTROL_QUIET_H

#include "agent/control/remote_agent.h"
#include "agent/control/unwinder.h"

/* Where a thread is that may come to the agent, or wait for who unloads it. */
typedef struct sj_quiet_places {
    sj_remote_range fork;   /* may have taken the address of a fork handler already */
    uint64_t loader_lock;   /* held while a module is loaded; 0: not known */
    sj_remote_range loader; /* its frames are looked for where the lock is not known */
} sj_quiet_places;

/* sj_quiet_find_places looks them up while threads run. What is not found is empty. */
void sj_quiet_find_places(const sj_target *target, sj_quiet_places *places);

/* sj_quiet_is_left tells whether no thread stands in the agent's code or will return to it. Threads
 * are stopped, the text is restored and the agent's tables are those that were read. */
bool sj_quiet_is_left(const sj_target *target, const sj_remote_agent *agent, sj_unwinder *unwinder);

/* sj_quiet_is_reached tells whether, besides, none is in these places. */
bool sj_quiet_is_reached(const sj_target *target, const sj_remote_agent *agent,
                         sj_unwinder *unwinder, const sj_quiet_places *places);

#endif
