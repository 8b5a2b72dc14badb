#include "agent/zombies/pressure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096, AVAILABLE_PARTS = 20, GROUP_PARTS = 10 };

#define WAITING_PERCENT 10.0

/* Returns false and sets errno if the file cannot be read. */
static bool read_text(const char *root, const char *path, char text[TEXT_BYTES])
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *file = fopen(full, "re");
    if (file == NULL) {
        return false;
    }
    errno = 0;
    const size_t bytes = fread(text, 1, TEXT_BYTES - 1, file);
    const int error = errno;
    fclose(file);
    text[bytes] = '\0';
    errno = error;
    return bytes != 0;
}

/* Finds the number after a word. Returns false if the word is missing. */
static bool find_number(const char *text, const char *word, uint64_t *number)
{
    const char *at = strstr(text, word);
    return at != NULL && sscanf(at + strlen(word), "%lu", number) == 1;
}

static bool do_tasks_wait(const char *root, uint32_t *unseen)
{
    char text[TEXT_BYTES];
    double percent = 0;
    if (!read_text(root, "/proc/pressure/memory", text) ||
        sscanf(text, "some avg10=%lf", &percent) != 1) {
        *unseen |= SJ_PRESSURE_NO_WAITING;
        return false;
    }
    return percent >= WAITING_PERCENT;
}

static bool is_machine_full(const char *root, uint32_t *unseen)
{
    char text[TEXT_BYTES];
    uint64_t all = 0;
    uint64_t available = 0;
    if (!read_text(root, "/proc/meminfo", text) || !find_number(text, "MemTotal:", &all) ||
        !find_number(text, "MemAvailable:", &available)) {
        *unseen |= SJ_PRESSURE_NO_MACHINE;
        return false;
    }
    return available < all / AVAILABLE_PARTS;
}

/* A missing file means that the group has no limit of its own. Any other error hides one. */
static bool read_number(const char *root, const char *group, const char *name, uint64_t *number,
                        uint32_t *unseen)
{
    char path[PATH_MAX];
    char text[TEXT_BYTES];
    snprintf(path, sizeof(path), "/sys/fs/cgroup%.2000s/%s", group, name);
    if (!read_text(root, path, text)) {
        *unseen |= errno != ENOENT ? SJ_PRESSURE_NO_GROUP : 0;
        return false;
    }
    return sscanf(text, "%lu", number) == 1; /* "max": no limit */
}

/* Checks the second version of control groups, whose line begins with "0::". */
static bool is_group_full(const char *root, pid_t pid, uint32_t *unseen)
{
    char path[PATH_MAX];
    char text[TEXT_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    uint64_t most = 0;
    uint64_t now = 0;
    if (!read_text(root, path, text)) {
        const bool is_gone = errno == ENOENT || errno == ESRCH; /* The process has ended. */
        *unseen |= is_gone ? 0 : SJ_PRESSURE_NO_GROUP;
        return false;
    }
    const char *line = strstr(text, "0::/");
    if (line == NULL) {
        *unseen |= SJ_PRESSURE_NO_GROUP;
        return false;
    }
    char group[TEXT_BYTES];
    snprintf(group, sizeof(group), "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    return read_number(root, group, "memory.max", &most, unseen) &&
           read_number(root, group, "memory.current", &now, unseen) &&
           now > most - most / GROUP_PARTS;
}

/* Finds a limit in /proc/PID/limits. Returns false if there is none. */
static bool find_limit(const char *text, const char *name, uint64_t *bytes)
{
    const char *at = strstr(text, name);
    return at != NULL && sscanf(at + strlen(name), "%lu", bytes) == 1;
}

/* True if the next allocation of the process may fail: by its limit of addresses, or of writable
 * memory. */
static bool is_process_full(const char *root, pid_t pid)
{
    char path[PATH_MAX];
    char limits[TEXT_BYTES];
    char status[TEXT_BYTES];
    uint64_t most = 0;
    uint64_t kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    if (!read_text(root, path, limits)) {
        return false;
    }
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (!read_text(root, path, status)) {
        return false;
    }
    return (find_limit(limits, "Max address space", &most) &&
            find_number(status, "VmSize:", &kib) && kib * 1024 > most - most / GROUP_PARTS) ||
           (find_limit(limits, "Max data size", &most) && find_number(status, "VmData:", &kib) &&
            kib * 1024 > most - most / GROUP_PARTS);
}

bool sj_pressure_is_high(const char *root, pid_t pid, uint32_t *unseen)
{
    *unseen = 0;
    const bool do_wait = do_tasks_wait(root, unseen);
    const bool is_full = is_machine_full(root, unseen);
    return is_group_full(root, pid, unseen) || do_wait || is_full || is_process_full(root, pid);
}
