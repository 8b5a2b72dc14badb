/* Processes that were handed to a drain and that it has not taken over. Any thread. */
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
    sj_added_process *newest; /* each links the one that was added before it */
} sj_added_processes;

void sj_added_processes_init(sj_added_processes *added);
void sj_added_processes_deinit(sj_added_processes *added);

/* Begins to track the process, and adds it. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_added_processes_add(sj_added_processes *added, uint64_t number,
                                               pid_t pid, const char *arena_name);

/* Returns all, the oldest first; the caller owns them. */
sj_added_process *sj_added_processes_take(sj_added_processes *added);

/* Puts processes, the oldest first, back before those that were added since they were taken. */
void sj_added_processes_put_back(sj_added_processes *added, sj_added_process *oldest);

#endif
