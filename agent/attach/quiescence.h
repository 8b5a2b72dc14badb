/* Whether the threads of a process have to do with the agent. */
#ifndef SJ_AGENT_ATTACH_QUIESCENCE_H
#define SJ_AGENT_ATTACH_QUIESCENCE_H

#include "agent/livepatch/remote_agent.h"
#include "agent/ptrace/unwinder.h"

/* Where a thread is that may come to the agent, or wait for who unloads it. */
typedef struct sj_quiescence_regions {
    sj_remote_range fork;   /* may have taken the address of a fork handler already */
    uint64_t loader_lock;   /* held while a module is loaded; 0: not known */
    sj_remote_range loader; /* its frames are looked for where the lock is not known */
} sj_quiescence_regions;

/* sj_quiescence_find_regions looks them up while threads run. What is not found is empty. */
void sj_quiescence_find_regions(const sj_tracee *target, sj_quiescence_regions *places);

/* sj_quiescence_is_left returns whether no thread stands in the agent's code or will return to it.
 * Threads are stopped, the text is restored and the agent's tables are those that were read. */
bool sj_quiescence_is_left(const sj_tracee *target, const sj_remote_agent *agent,
                           sj_unwinder *unwinder);

/* sj_quiescence_is_reached returns whether, besides, none is in these places. */
bool sj_quiescence_is_reached(const sj_tracee *target, const sj_remote_agent *agent,
                              sj_unwinder *unwinder, const sj_quiescence_regions *places);

#endif
