#include "agent/policy/thread_filter.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool sj_thread_read_name(pid_t pid, uint32_t tid, char name[SJ_THREAD_NAME_BYTES])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)pid, tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, name, SJ_THREAD_NAME_BYTES - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    name[got > 0 ? got : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return got > 0;
}

bool sj_thread_is_wanted(const sj_policy *policy, const char *name)
{
    return policy == NULL || policy->thread_count == 0 ||
           sj_pattern_matches_any(policy->threads, policy->thread_count, name);
}
