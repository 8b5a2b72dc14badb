#include "agent/ptrace/proc_status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void take_numbers(const char *line, sj_proc_status *facts)
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
        /* One number for each namespace from here to its own. */
        const char *last = strrchr(line, '\t');
        (void)!sscanf(last != NULL ? last : "", "%d", &facts->pid_inside);
    }
}

static void take_line(const char *line, sj_proc_status *facts)
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
    take_numbers(line, facts);
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
        take_line(line, facts);
    }
    fclose(file);
    return SJ_OK;
}

/* Containers give all of their processes a filter, which lets them trace each other: what counts is
 * what a process has beyond this one's. */
static bool is_confined(const sj_proc_status *facts)
{
    sj_proc_status own;
    if (facts->seccomp == 0 || read_status(getpid(), &own) != SJ_OK) {
        return facts->seccomp != 0;
    }
    return facts->seccomp != own.seccomp || facts->seccomp_filters > own.seccomp_filters;
}

sj_status sj_proc_status_read(pid_t pid, sj_proc_status *facts)
{
    char path[64];
    char line[256];
    struct stat status;
    SJ_TRY(read_status(pid, facts));
    facts->is_confined = is_confined(facts);
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    /* Both have no program any more or ever; the kernel's threads are children of its process 2. */
    const bool is_bare = lstat(path, &status) == 0 && stat(path, &status) != 0 && errno == ENOENT &&
                         readlink(path, line, sizeof(line)) < 0;
    facts->is_kernel = is_bare && (pid == 2 || facts->parent == 2);
    facts->is_ending = is_bare && !facts->is_kernel;
    return SJ_OK;
}

sj_status sj_proc_thread_read(pid_t pid, pid_t tid, sj_proc_thread *thread)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name may contain others */
    *thread = (sj_proc_thread){0};
    return name_end != NULL && sscanf(name_end + 1,
                                      " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                                      "%*d %*d %ld %*d %llu",
                                      &thread->state, &thread->parent, &thread->threads,
                                      &thread->started_ticks) == 4
               ? SJ_OK
               : SJ_ENOTFOUND;
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

bool sj_proc_has_thread(pid_t pid, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
    return access(path, F_OK) == 0;
}
