#include "agent/attach/detach.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/tracee_modules.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct orphan_search {
    const sj_session_id *session;
    const pid_t *parents;
    size_t count;
} orphan_search;

static bool is_parent(const orphan_search *search, pid_t pid)
{
    for (size_t i = 0; i < search->count; i++) {
        if (search->parents[i] == pid) {
            return true;
        }
    }
    return false;
}

static bool is_child(const orphan_search *search, pid_t pid)
{
    sj_proc_status facts;
    return sj_proc_status_read(pid, &facts) == SJ_OK && is_parent(search, facts.parent);
}

/* True for an orphan of the session. A child that was forked before the agent knew its session is
 * recognized by its parent. `*half_bytes` is the size of an agent that stays, because it was only
 * half loaded or cannot be read. */
static bool is_orphan(const orphan_search *search, pid_t pid, uint64_t *half_bytes)
{
    static const sj_session_id none;
    sj_remote_module agent;
    sj_recorded recorded;
    *half_bytes = 0;
    if (is_parent(search, pid) || sj_remote_module_find(pid, "libsojourn-agent", &agent) != SJ_OK) {
        return false;
    }
    if (sj_detach_find(pid, &recorded, NULL) != SJ_OK || !recorded.has_agent) {
        *half_bytes = is_child(search, pid) ? agent.high - agent.low : 0;
        return false;
    }
    return memcmp(&recorded.session, search->session, sizeof(none)) == 0 ||
           (memcmp(&recorded.session, &none, sizeof(none)) == 0 && is_child(search, pid));
}

/* Returns the bytes that stay in the process. */
static uint64_t detach_orphan(pid_t pid)
{
    sj_detach_process_report report;
    sj_remote_module agent;
    if (sj_detach_process(pid, &report, NULL) == SJ_OK) {
        return report.left_bytes;
    }
    const bool stays = sj_remote_module_find(pid, "libsojourn-agent", &agent) == SJ_OK;
    return stays ? agent.high - agent.low : 0;
}

size_t sj_detach_orphans(const sj_session_id *session, const pid_t *parents, size_t count,
                         uint64_t *left_bytes)
{
    const orphan_search search = {.session = session, .parents = parents, .count = count};
    size_t found = 0;
    *left_bytes = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        uint64_t half_bytes = 0;
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && is_orphan(&search, pid, &half_bytes)) {
            found++;
            *left_bytes += detach_orphan(pid);
        }
        *left_bytes += half_bytes;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

/* True if the process has an agent of the session. A process older than this one cannot have, so it
 * costs no further check. */
static bool has_agent_of(const sj_session_id *session, pid_t pid, unsigned long long since_ticks)
{
    sj_proc_thread thread;
    sj_remote_module agent;
    sj_recorded recorded;
    return sj_proc_thread_read(pid, pid, &thread) == SJ_OK && thread.started_ticks >= since_ticks &&
           sj_proc_is_alive(pid) &&
           sj_remote_module_find(pid, "libsojourn-agent", &agent) == SJ_OK &&
           sj_detach_find(pid, &recorded, NULL) == SJ_OK && recorded.has_agent &&
           memcmp(&recorded.session, session, sizeof(*session)) == 0;
}

size_t sj_detach_list(const sj_session_id *session, pid_t *pids, size_t capacity)
{
    sj_proc_thread own = {0};
    size_t count = 0;
    /* If it fails, all processes are checked. */
    (void)!sj_proc_thread_read(getpid(), getpid(), &own);
    DIR *folder = opendir("/proc");
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && count < capacity; entry = readdir(folder)) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && has_agent_of(session, pid, own.started_ticks)) {
            pids[count++] = pid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}
