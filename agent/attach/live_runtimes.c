#include "agent/attach/live_runtimes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool is_mono(const char *path)
{
    static const char *const names[] = {"mono-sgen", "mono-boehm", "libmonosgen-", "libmonoboehm-"};
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(slash + 1, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool sj_live_runtimes_has_mono(pid_t pid)
{
    char line[PATH_MAX + 128];
    bool found = false;
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(line, "re");
    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        const char *path = strchr(line, '/');
        found = path != NULL && is_mono(path);
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}
