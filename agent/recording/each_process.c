#include "agent/recording/each_process.h"

enum { PROCESSES_MAX = 1024, ROUNDS = 8 };

static bool is_listed(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

void sj_each_process(sj_registry *registry, sj_process_visit *visit, void *context)
{
    pid_t done[PROCESSES_MAX];
    pid_t living[PROCESSES_MAX];
    size_t done_count = 0;
    for (size_t round = 0, found = 1; round < ROUNDS && found != 0; round++) {
        const size_t count = sj_registry_list_living(registry, living, PROCESSES_MAX);
        found = 0;
        for (size_t i = 0; i < count && done_count < PROCESSES_MAX; i++) {
            if (!is_listed(done, done_count, living[i])) {
                visit(context, living[i]);
                done[done_count++] = living[i];
                found++;
            }
        }
    }
}
