#include "agent/attach/live_runtimes.h"

#include "agent/runtimes/runtime.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool is_bound(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->binds_attached && sj_runtime_has_file(sj_runtimes[i], slash + 1)) {
            return true;
        }
    }
    return false;
}

bool sj_live_runtimes_are_bound(pid_t pid)
{
    char line[PATH_MAX + 128];
    bool found = false;
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(line, "re");
    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        const char *path = strchr(line, '/');
        found = path != NULL && is_bound(path);
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}
