#include "agent/control/attach.h"
#include "agent/control/attach_check.h"
#include "agent/control/remote_module.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct stray_search {
    const sj_session_id *session;
    const pid_t *parents;
    size_t count;
} stray_search;

static bool is_parent(const stray_search *search, pid_t pid)
{
    for (size_t i = 0; i < search->count; i++) {
        if (search->parents[i] == pid) {
            return true;
        }
    }
    return false;
}

/* is_stray: a child that was forked before the agent knew its session tells by its parent. */
static bool is_stray(const stray_search *search, pid_t pid)
{
    static const sj_session_id none;
    sj_remote_module agent;
    sj_recorded recorded;
    sj_process_facts facts;
    if (is_parent(search, pid) || sj_remote_module_find(pid, "libsojourn-agent", &agent) != SJ_OK ||
        sj_attach_look(pid, &recorded, NULL) != SJ_OK || !recorded.has_agent) {
        return false;
    }
    return memcmp(&recorded.session, search->session, sizeof(none)) == 0 ||
           (memcmp(&recorded.session, &none, sizeof(none)) == 0 &&
            sj_process_facts_read(pid, &facts) == SJ_OK && is_parent(search, facts.parent));
}

size_t sj_attach_leave_strays(const sj_session_id *session, const pid_t *parents, size_t count)
{
    const stray_search search = {.session = session, .parents = parents, .count = count};
    size_t found = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        sj_leave_report report;
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && is_stray(&search, pid)) {
            found++;
            (void)!sj_attach_leave(pid, &report, NULL);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}
