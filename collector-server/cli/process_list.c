#include "collector-server/cli/process_list.h"

#include "agent/ptrace/proc_status.h"
#include "proto/base/array.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTED_MATCHES = 8 };

static int compare_pids(const void *left, const void *right)
{
    return *(const pid_t *)left - *(const pid_t *)right;
}

size_t sj_process_list(pid_t **pids)
{
    size_t count = 0;
    size_t capacity = 0;
    DIR *folder = opendir("/proc");
    *pids = NULL;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && sj_array_reserve(pids, &capacity, count, 1, sizeof(**pids)) == SJ_OK) {
            (*pids)[count++] = pid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (count != 0) {
        qsort(*pids, count, sizeof(**pids), compare_pids);
    }
    return count;
}

void sj_process_user(uint32_t user, char name[SJ_USER_NAME_BYTES])
{
    const struct passwd *entry = getpwuid(user);
    if (entry != NULL) {
        snprintf(name, SJ_USER_NAME_BYTES, "%s", entry->pw_name);
    } else {
        snprintf(name, SJ_USER_NAME_BYTES, "%u", user);
    }
}

/* Reads the command line: words that each end with a NUL. Returns the number of bytes. */
static size_t read_words(pid_t pid, char words[SJ_COMMAND_LINE_BYTES])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, words, SJ_COMMAND_LINE_BYTES - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    const size_t count = got > 0 ? (size_t)got : 0;
    words[count] = '\0';
    return count;
}

void sj_process_command(pid_t pid, char command[SJ_COMMAND_LINE_BYTES])
{
    size_t count = read_words(pid, command);
    while (count > 0 && command[count - 1] == '\0') {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)command[i];
        command[i] = byte == '\0' ? ' ' : byte < ' ' || byte == 0x7f ? '?' : command[i];
    }
}

static bool is_file_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

/* True if `name` is the kernel's name of the process, or the file name of its program or of its
 * first word. */
static bool has_name(pid_t pid, const sj_proc_status *facts, const char *name)
{
    char words[SJ_COMMAND_LINE_BYTES];
    char path[64];
    char program[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const ssize_t bytes = readlink(path, program, sizeof(program) - 1);
    program[bytes > 0 ? bytes : 0] = '\0';
    (void)read_words(pid, words);
    return strcmp(facts->name, name) == 0 || is_file_name(program, name) ||
           is_file_name(words, name);
}

/* Appends a process to the text `list`, or "..." if the list is full. `matches` is the number of
 * earlier processes. */
static void add_match(char *list, size_t capacity, size_t matches, pid_t pid)
{
    const size_t used = strlen(list);
    char command[SJ_COMMAND_LINE_BYTES];
    if (matches < LISTED_MATCHES) {
        sj_process_command(pid, command);
        snprintf(list + used, capacity - used, "%s%d (%.24s)", matches != 0 ? ", " : "", (int)pid,
                 command);
    } else if (matches == LISTED_MATCHES) {
        snprintf(list + used, capacity - used, ", ...");
    }
}

static sj_status find_by_name(const char *name, pid_t *found, sj_error *error)
{
    char list[SJ_ERROR_TEXT_BYTES / 2] = "";
    pid_t *pids = NULL;
    const size_t count = sj_process_list(&pids);
    size_t matches = 0;
    for (size_t i = 0; i < count; i++) {
        sj_proc_status facts;
        if (pids[i] != getpid() && sj_proc_status_read(pids[i], &facts) == SJ_OK &&
            !facts.is_kernel && !facts.is_ending && has_name(pids[i], &facts, name)) {
            add_match(list, sizeof(list), matches++, pids[i]);
            *found = pids[i];
        }
    }
    free(pids);
    if (matches == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "no process is named \"%.64s\"; `sojourn ps` lists them", name);
    }
    return matches == 1 ? SJ_OK
                        : sj_fail(error, SJ_EINVAL,
                                  "%zu processes are named \"%.64s\": %s; give the number of one",
                                  matches, name, list);
}

sj_status sj_process_find(const char *text, pid_t *pid, sj_error *error)
{
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    if (end != text && *end == '\0') {
        *pid = (pid_t)number;
        return number > 0 && number <= INT32_MAX
                   ? SJ_OK
                   : sj_fail(error, SJ_EINVAL, "\"%.64s\" is not the number of a process", text);
    }
    return find_by_name(text, pid, error);
}

int sj_process_refuse(const sj_command *command, const sj_error *error)
{
    const bool is_wrong = error->status == SJ_EINVAL;
    return sj_command_error(command, is_wrong ? SJ_EXIT_USAGE : sj_exit_code(error->status), "%s",
                            error->text);
}
