/* Checks if threads of a process are in the agent or will return to it. */
#ifndef SJ_AGENT_ATTACH_QUIESCENCE_H
#define SJ_AGENT_ATTACH_QUIESCENCE_H

#include "agent/livepatch/remote_agent.h"
#include "agent/ptrace/unwinder.h"

/* Regions from which a thread may enter the agent, or wait for the thread that unloads it. */
typedef struct sj_quiescence_regions {
    sj_remote_range fork;   /* A thread in it may have copied the address of a fork handler. */
    uint64_t loader_lock;   /* Held while a module is loaded. 0: unknown. */
    sj_remote_range loader; /* Its frames are searched for if the lock is unknown. */
} sj_quiescence_regions;

/* Finds the regions while threads run. A region that is not found is empty. */
void sj_quiescence_find_regions(const sj_tracee *target, sj_quiescence_regions *places);

/* True if no thread is in the agent's code or will return to it. Threads are stopped, the text is
 * restored, and the agent's tables are unchanged since they were read. */
bool sj_quiescence_is_left(const sj_tracee *target, const sj_remote_agent *agent,
                           sj_unwinder *unwinder);

/* True if sj_quiescence_is_left returns true, the loader's lock is free, and no thread is in
 * `places`. */
bool sj_quiescence_is_reached(const sj_tracee *target, const sj_remote_agent *agent,
                              sj_unwinder *unwinder, const sj_quiescence_regions *places);

#endif
