#include "agent/attach/live_runtimes.h"

#include "agent/runtimes/runtime.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool is_bound(const sj_runtime *runtime)
{
    return runtime->binds_attached;
}

static bool is_joined(const sj_runtime *runtime)
{
    return runtime->joins_attached;
}

static bool is_of_one(const char *path, bool (*matches)(const sj_runtime *runtime))
{
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < SJ_RUNTIMES; i++) {
        if (matches(sj_runtimes[i]) && sj_runtime_has_file(sj_runtimes[i], slash + 1)) {
            return true;
        }
    }
    return false;
}

static bool has_loaded(pid_t pid, bool (*matches)(const sj_runtime *runtime))
{
    char line[PATH_MAX + 128];
    bool found = false;
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(line, "re");
    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        const char *path = strchr(line, '/');
        found = path != NULL && is_of_one(path, matches);
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

bool sj_live_runtimes_are_bound(pid_t pid)
{
    return has_loaded(pid, is_bound);
}

bool sj_live_runtimes_are_joined(pid_t pid)
{
    return has_loaded(pid, is_joined);
}
