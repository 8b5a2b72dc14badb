#include "agent/zombies/pressure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096, AVAILABLE_PARTS = 20, GROUP_PARTS = 10 };

#define WAITING_PERCENT 10.0

/* Reads a file below `root`. Returns false and sets errno if it cannot be read or is empty. */
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

/* Writes the number after a word. Returns false if the text has no such word or number. */
static bool find_number(const char *text, const char *word, uint64_t *number)
{
    const char *at = strstr(text, word);
    return at != NULL && sscanf(at + strlen(word), "%lu", number) == 1;
}

/* True if tasks have waited for memory for at least 10 % of the last 10 s. */
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

/* Reads a number of a control group. A missing file means that the group has no limit. After any
 * other error, a limit may exist, so this sets SJ_PRESSURE_NO_GROUP. */
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
    return sscanf(text, "%lu", number) == 1; /* "max" means no limit. */
}

/* Reads the memory limit and the memory use of the process's control group (version 2, whose line
 * in /proc/PID/cgroup begins with "0::"). Returns false if the group has no limit, or if a file
 * cannot be read. */
static bool read_group(const char *root, pid_t pid, uint64_t *most, uint64_t *now, uint32_t *unseen)
{
    char path[PATH_MAX];
    char text[TEXT_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
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
    return read_number(root, group, "memory.max", most, unseen) &&
           read_number(root, group, "memory.current", now, unseen);
}

static bool is_group_full(const char *root, pid_t pid, uint32_t *unseen)
{
    uint64_t most = 0;
    uint64_t now = 0;
    return read_group(root, pid, &most, &now, unseen) && now > most - most / GROUP_PARTS;
}

/* Writes the soft limit in a line of /proc/PID/limits. Returns false if it is "unlimited" or
 * missing. */
static bool find_limit(const char *text, const char *name, uint64_t *bytes)
{
    const char *at = strstr(text, name);
    return at != NULL && sscanf(at + strlen(name), "%lu", bytes) == 1;
}

enum { PROCESS_LIMITS = 2 };

typedef struct used_limit {
    uint64_t most; /* UINT64_MAX if the process has no limit. */
    uint64_t used;
} used_limit;

/* Reads the limits of address space and data size, and how much of each is used. */
static void read_process_limits(const char *root, pid_t pid, used_limit limits[PROCESS_LIMITS])
{
    static const char *const names[][2] = {{"Max address space", "VmSize:"},
                                           {"Max data size", "VmData:"}};
    char path[PATH_MAX];
    char limits_text[TEXT_BYTES];
    char status[TEXT_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    const bool has_limits = read_text(root, path, limits_text);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    const bool is_known = has_limits && read_text(root, path, status);
    for (int i = 0; i < PROCESS_LIMITS; i++) {
        uint64_t most = 0;
        uint64_t kib = 0;
        limits[i] = (used_limit){.most = UINT64_MAX};
        if (is_known && find_limit(limits_text, names[i][0], &most) &&
            find_number(status, names[i][1], &kib)) {
            limits[i] = (used_limit){.most = most, .used = kib * 1024};
        }
    }
}

/* True if less than a tenth of a limit of the process is left. */
static bool is_process_full(const char *root, pid_t pid)
{
    used_limit limits[PROCESS_LIMITS];
    read_process_limits(root, pid, limits);
    bool is_full = false;
    for (int i = 0; i < PROCESS_LIMITS; i++) {
        is_full = is_full || limits[i].used > limits[i].most - limits[i].most / GROUP_PARTS;
    }
    return is_full;
}

/* Returns the smaller of `bytes` and most - used. */
static uint64_t smaller_of(uint64_t bytes, uint64_t most, uint64_t used)
{
    const uint64_t left = used < most ? most - used : 0;
    return left < bytes ? left : bytes;
}

uint64_t sj_pressure_free_bytes(const char *root, pid_t pid)
{
    char text[TEXT_BYTES] = "";
    used_limit limits[PROCESS_LIMITS];
    uint64_t bytes = UINT64_MAX;
    uint64_t kib = 0;
    uint64_t most = 0;
    uint64_t now = 0;
    uint32_t unseen = 0;
    if (read_text(root, "/proc/meminfo", text) && find_number(text, "MemAvailable:", &kib)) {
        bytes = kib * 1024;
    }
    if (find_number(text, "CommitLimit:", &most) && find_number(text, "Committed_AS:", &now) &&
        read_text(root, "/proc/sys/vm/overcommit_memory", text) && text[0] == '2') {
        bytes = smaller_of(bytes, most * 1024, now * 1024);
    }
    if (read_group(root, pid, &most, &now, &unseen)) {
        bytes = smaller_of(bytes, most, now);
    }
    read_process_limits(root, pid, limits);
    for (int i = 0; i < PROCESS_LIMITS; i++) {
        if (limits[i].most != UINT64_MAX) {
            bytes = smaller_of(bytes, limits[i].most, limits[i].used);
        }
    }
    return bytes;
}

bool sj_pressure_is_high(const char *root, pid_t pid, uint32_t *unseen)
{
    *unseen = 0;
    const bool do_wait = do_tasks_wait(root, unseen);
    const bool is_full = is_machine_full(root, unseen);
    return is_group_full(root, pid, unseen) || do_wait || is_full || is_process_full(root, pid);
}
