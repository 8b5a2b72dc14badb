/* Processes that were handed to a drain and that the drain has not started to read yet.
 * Thread-safe. */
#ifndef SJ_AGENT_DRAIN_ADDED_PROCESSES_H
#define SJ_AGENT_DRAIN_ADDED_PROCESSES_H

#include "agent/abi/arena.h"
#include "agent/drain/tracked_process.h"
#include "proto/base/status.h"

#include <pthread.h>

typedef struct sj_added_process {
    struct sj_added_process *next;
    uint64_t number;
    sj_tracked_process tracked;
    char arena_name[SJ_ARENA_MARK_BYTES];
} sj_added_process;

typedef struct sj_added_processes {
    pthread_mutex_t mutex;
    sj_added_process *newest; /* the process added last; `next` leads to the one added before it */
} sj_added_processes;

void sj_added_processes_init(sj_added_processes *added);
void sj_added_processes_deinit(sj_added_processes *added);

/* Starts to track the process `pid` and adds it to the list. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_added_processes_add(sj_added_processes *added, uint64_t number,
                                               pid_t pid, const char *arena_name);

/* Removes all processes from the list and returns them, the oldest first. The caller owns them. */
sj_added_process *sj_added_processes_pop_all(sj_added_processes *added);

/* Puts processes back that sj_added_processes_pop_all returned and that were not started. `oldest`
 * is the first of them. They go before the processes that were added meanwhile. */
void sj_added_processes_put_back(sj_added_processes *added, sj_added_process *oldest);

#endif
