#include "agent/zombies/pressure.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096, AVAILABLE_PARTS = 20, GROUP_PARTS = 10 };

#define WAITING_PERCENT 10.0

static bool read_text(const char *root, const char *path, char text[TEXT_BYTES])
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *file = fopen(full, "re");
    if (file == NULL) {
        return false;
    }
    const size_t bytes = fread(text, 1, TEXT_BYTES - 1, file);
    fclose(file);
    text[bytes] = '\0';
    return bytes != 0;
}

/* The number behind a word; false: it is not there. */
static bool find_number(const char *text, const char *word, uint64_t *number)
{
    const char *at = strstr(text, word);
    return at != NULL && sscanf(at + strlen(word), "%lu", number) == 1;
}

static bool do_tasks_wait(const char *root)
{
    char text[TEXT_BYTES];
    double percent = 0;
    return read_text(root, "/proc/pressure/memory", text) &&
           sscanf(text, "some avg10=%lf", &percent) == 1 && percent >= WAITING_PERCENT;
}

static bool is_machine_full(const char *root)
{
    char text[TEXT_BYTES];
    uint64_t all = 0;
    uint64_t available = 0;
    return read_text(root, "/proc/meminfo", text) && find_number(text, "MemTotal:", &all) &&
           find_number(text, "MemAvailable:", &available) && available < all / AVAILABLE_PARTS;
}

/* Of the second version of control groups, whose line begins with "0::". */
static bool is_group_full(const char *root, pid_t pid)
{
    char path[PATH_MAX];
    char text[TEXT_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    const char *line = read_text(root, path, text) ? strstr(text, "0::/") : NULL;
    uint64_t most = 0;
    uint64_t now = 0;
    if (line == NULL) {
        return false;
    }
    char group[TEXT_BYTES];
    snprintf(group, sizeof(group), "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    snprintf(path, sizeof(path), "/sys/fs/cgroup%.2000s/memory.max", group);
    if (!read_text(root, path, text) || sscanf(text, "%lu", &most) != 1) {
        return false;
    }
    snprintf(path, sizeof(path), "/sys/fs/cgroup%.2000s/memory.current", group);
    return read_text(root, path, text) && sscanf(text, "%lu", &now) == 1 &&
           now > most - most / GROUP_PARTS;
}

bool sj_pressure_is_high(const char *root, pid_t pid)
{
    return do_tasks_wait(root) || is_machine_full(root) || is_group_full(root, pid);
}
