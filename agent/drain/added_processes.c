#include "agent/drain/added_processes.h"

#include <stdlib.h>
#include <string.h>

void sj_added_processes_init(sj_added_processes *added)
{
    *added = (sj_added_processes){0};
    pthread_mutex_init(&added->mutex, NULL);
}

void sj_added_processes_deinit(sj_added_processes *added)
{
    while (added->newest != NULL) {
        sj_added_process *gone = added->newest;
        added->newest = gone->next;
        sj_tracked_process_close(&gone->tracked);
        free(gone);
    }
    pthread_mutex_destroy(&added->mutex);
}

sj_status sj_added_processes_add(sj_added_processes *added, uint64_t number, pid_t pid,
                                 const char *arena_name)
{
    sj_added_process *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->number = number;
    /* tracked from now on, because the process may have ended when the drain starts to read it */
    sj_tracked_process_open(pid, &made->tracked);
    strncpy(made->arena_name, arena_name, sizeof(made->arena_name) - 1);
    pthread_mutex_lock(&added->mutex);
    made->next = added->newest;
    added->newest = made;
    pthread_mutex_unlock(&added->mutex);
    return SJ_OK;
}

sj_added_process *sj_added_processes_pop_all(sj_added_processes *added)
{
    pthread_mutex_lock(&added->mutex);
    sj_added_process *newest = added->newest;
    added->newest = NULL;
    pthread_mutex_unlock(&added->mutex);
    sj_added_process *oldest = NULL;
    while (newest != NULL) {
        sj_added_process *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void sj_added_processes_put_back(sj_added_processes *added, sj_added_process *oldest)
{
    pthread_mutex_lock(&added->mutex);
    sj_added_process **end = &added->newest;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    while (oldest != NULL) {
        sj_added_process *next = oldest->next;
        oldest->next = *end;
        *end = oldest;
        oldest = next;
    }
    pthread_mutex_unlock(&added->mutex);
}
