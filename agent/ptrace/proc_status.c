#include "agent/ptrace/proc_status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void parse_numbers(const char *line, sj_proc_status *facts)
{
    unsigned first = 0;
    unsigned second = 0;
    unsigned long long permitted = 0;
    if (sscanf(line, "Uid:\t%u\t%u", &first, &second) == 2) {
        facts->user = first;
        facts->effective_user = second;
    } else if (sscanf(line, "CapPrm:\t%llx", &permitted) == 1) {
        facts->capabilities = permitted;
    } else if (strncmp(line, "NSpid:", strlen("NSpid:")) == 0) {
        /* The line has one number for each namespace, from this process's to the target's own. */
        const char *last = strrchr(line, '\t');
        (void)!sscanf(last != NULL ? last : "", "%d", &facts->pid_inside);
        facts->has_own_numbers = last != NULL && last != strchr(line, '\t');
    }
}

static void parse_line(const char *line, sj_proc_status *facts)
{
    if (sscanf(line, "Name:\t%63[^\n]", facts->name) == 1 ||
        sscanf(line, "State:\t%c", &facts->state) == 1 ||
        sscanf(line, "Tgid:\t%d", &facts->leader) == 1 ||
        sscanf(line, "PPid:\t%d", &facts->parent) == 1 ||
        sscanf(line, "TracerPid:\t%d", &facts->tracer) == 1 ||
        sscanf(line, "Threads:\t%u", &facts->threads) == 1 ||
        sscanf(line, "Seccomp:\t%d", &facts->seccomp) == 1 ||
        sscanf(line, "Seccomp_filters:\t%u", &facts->seccomp_filters) == 1) {
        return;
    }
    parse_numbers(line, facts);
}

static sj_status read_status(pid_t pid, sj_proc_status *facts)
{
    char path[64];
    char line[256];
    *facts = (sj_proc_status){.pid_inside = pid};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return SJ_ENOTFOUND;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        parse_line(line, facts);
    }
    fclose(file);
    return SJ_OK;
}

/* True if the control groups of a process and of this one are the same in every hierarchy. */
static bool is_in_own_control_group(pid_t pid)
{
    char path[64];
    char lines[2][PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    FILE *files[2] = {fopen("/proc/self/cgroup", "re"), fopen(path, "re")};
    bool is_same = files[0] != NULL && files[1] != NULL;
    bool is_line = is_same;
    while (is_same && is_line) {
        is_line = fgets(lines[0], sizeof(lines[0]), files[0]) != NULL;
        is_same = is_line == (fgets(lines[1], sizeof(lines[1]), files[1]) != NULL) &&
                  (!is_line || strcmp(lines[0], lines[1]) == 0);
    }
    for (size_t i = 0; i < 2; i++) {
        if (files[i] != NULL) {
            fclose(files[i]);
        }
    }
    return is_same;
}

/* True if a process has no more filters than `other`, from which it may have inherited them. */
static bool has_filters_of(const sj_proc_status *facts, pid_t other)
{
    sj_proc_status status;
    return read_status(other, &status) == SJ_OK && facts->seccomp == status.seccomp &&
           facts->seccomp_filters <= status.seccomp_filters;
}

/* True if a process has filters that neither its container nor its systemd unit gave it. The kernel
 * reports how many filters a process has, but not which. A container gives filters to all of its
 * processes, including the first. A systemd unit gives filters to the processes of its control
 * group. Another unit may have as many filters that forbid more. */
static bool is_confined(pid_t pid, const sj_proc_status *facts)
{
    return facts->seccomp != 0 && !has_filters_of(facts, 1) &&
           !(is_in_own_control_group(pid) && has_filters_of(facts, getpid()));
}

sj_status sj_proc_status_read(pid_t pid, sj_proc_status *facts)
{
    char path[64];
    char line[256];
    struct stat status;
    sj_proc_thread thread;
    SJ_TRY(read_status(pid, facts));
    facts->is_confined = is_confined(pid, facts);
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    /* Kernel threads and dead processes have no program. */
    const bool is_bare = lstat(path, &status) == 0 && stat(path, &status) != 0 && errno == ENOENT &&
                         readlink(path, line, sizeof(line)) < 0;
    facts->is_kernel = sj_proc_thread_read(pid, pid, &thread) == SJ_OK && thread.is_kernel;
    facts->is_ending = is_bare && !facts->is_kernel;
    return SJ_OK;
}

sj_status sj_proc_thread_read(pid_t pid, pid_t tid, sj_proc_thread *thread)
{
    enum { EXITING_FLAG = 4, KERNEL_FLAG = 0x200000 }; /* the kernel's PF_EXITING, PF_KTHREAD */
    char path[64];
    char text[512];
    unsigned flags = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name itself may contain parentheses */
    *thread = (sj_proc_thread){0};
    const bool is_read =
        name_end != NULL &&
        sscanf(name_end + 1,
               " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &thread->state, &thread->parent, &flags, &thread->threads,
               &thread->started_ticks) == 5;
    thread->is_kernel = (flags & KERNEL_FLAG) != 0;
    thread->is_exiting = (flags & EXITING_FLAG) != 0;
    return is_read ? SJ_OK : SJ_ENOTFOUND;
}

static bool has_ended(const sj_proc_thread *thread)
{
    return thread->state == 'Z' || thread->state == 'X';
}

bool sj_proc_is_alive(pid_t pid)
{
    sj_proc_thread first;
    return sj_proc_thread_read(pid, pid, &first) == SJ_OK &&
           (!has_ended(&first) || first.threads > 1);
}

pid_t sj_proc_living(pid_t pid)
{
    char path[64];
    pid_t living = pid;
    sj_proc_thread thread;
    if (sj_proc_thread_read(pid, pid, &thread) != SJ_OK || !has_ended(&thread) ||
        thread.threads <= 1) {
        return pid;
    }
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && living == pid && (entry = readdir(folder)) != NULL) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && sj_proc_thread_read(pid, tid, &thread) == SJ_OK && !has_ended(&thread)) {
            living = tid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return living;
}

bool sj_proc_has_own_numbers(pid_t pid)
{
    sj_proc_status facts;
    return read_status(pid, &facts) == SJ_OK && facts.has_own_numbers;
}

/* Returns the tid of the thread of a process with own numbers, or 0. */
static pid_t search_thread(pid_t pid, pid_t tid_inside)
{
    char path[64];
    pid_t found = 0;
    sj_proc_status facts;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && found == 0 && (entry = readdir(folder)) != NULL) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && read_status(tid, &facts) == SJ_OK && facts.pid_inside == tid_inside) {
            found = tid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

pid_t sj_proc_find_thread(pid_t pid, pid_t tid_inside)
{
    char path[64];
    if (sj_proc_has_own_numbers(pid)) {
        return search_thread(pid, tid_inside);
    }
    snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid_inside);
    return access(path, F_OK) == 0 ? tid_inside : 0;
}

/* Returns the number after `prefix` in the line of a status file of /proc that begins with
 * `prefix`, or 0 if there is none. */
static uint64_t read_number(const char *path, const char *prefix, int base)
{
    char line[256];
    uint64_t number = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            number = strtoull(line + strlen(prefix), NULL, base);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

uint64_t sj_proc_count_waits(pid_t pid, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    return read_number(path, "voluntary_ctxt_switches:\t", 10);
}

static bool is_thread_ending(pid_t pid, pid_t tid)
{
    enum { KILL_BIT = 1 << (SIGKILL - 1) };
    char path[64];
    sj_proc_thread thread;
    if (sj_proc_thread_read(pid, tid, &thread) != SJ_OK || has_ended(&thread) ||
        thread.is_exiting) {
        return true;
    }
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    return (read_number(path, "SigPnd:\t", 16) & KILL_BIT) != 0;
}

bool sj_proc_is_ending(pid_t pid)
{
    char path[64];
    bool is_ending = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && is_ending && (entry = readdir(folder)) != NULL) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        is_ending = tid <= 0 || is_thread_ending(pid, tid);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_ending;
}
