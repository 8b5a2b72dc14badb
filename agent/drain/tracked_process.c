#include "agent/drain/tracked_process.h"

#include "agent/ptrace/proc_status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STAT_BYTES = 1024 };

/* Returns the identity of the file that a process runs; 0, 0 if it is unknown. */
static sj_program_file read_program(pid_t pid)
{
    char path[64];
    struct stat facts;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return stat(path, &facts) == 0
               ? (sj_program_file){.device = facts.st_dev, .inode = facts.st_ino}
               : (sj_program_file){0};
}

/* Reads /proc/PID/stat. Returns the text after the process's name, which begins with the state.
 * Returns NULL if the process does not exist. */
static const char *read_stat(pid_t pid, char *text, size_t capacity)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file >= 0 ? read(file, text, capacity - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end + 2 : NULL;
}

/* Sets `*has` to true if the process was forked and has not executed a program. Returns false if
 * that is unknown. */
static bool has_only_forked(pid_t pid, bool *has)
{
    enum { FLAGS_FIELD = 6, PF_FORKNOEXEC = 0x40 };
    char text[STAT_BYTES];
    const char *field = read_stat(pid, text, sizeof(text));
    for (int i = 0; i < FLAGS_FIELD && field != NULL; i++) {
        field = strchr(field, ' ');
        field = field != NULL ? field + 1 : NULL;
    }
    *has = field != NULL && (strtoul(field, NULL, 10) & PF_FORKNOEXEC) != 0;
    return field != NULL;
}

void sj_tracked_process_open(pid_t pid, sj_tracked_process *process)
{
    process->pid = pid;
    process->program = read_program(pid);
    (void)has_only_forked(pid, &process->is_only_forked);
    process->has_own_numbers = sj_proc_has_own_numbers(pid);
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

void sj_tracked_process_close(sj_tracked_process *process)
{
    if (process->pidfd >= 0) {
        close(process->pidfd);
        process->pidfd = -1;
    }
}

bool sj_tracked_process_has_ended(const sj_tracked_process *process)
{
    if (process->pidfd >= 0) {
        struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
        return poll(&polled, 1, 0) > 0;
    }
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

bool sj_tracked_process_has_thread(const sj_tracked_process *process, uint32_t tid)
{
    return syscall(SYS_tgkill, process->pid, tid, 0) == 0 || errno != ESRCH;
}

uint32_t sj_tracked_process_find_thread(const sj_tracked_process *process, uint32_t tid_inside)
{
    const pid_t tid =
        process->has_own_numbers ? sj_proc_find_thread(process->pid, (pid_t)tid_inside) : 0;
    return tid != 0 ? (uint32_t)tid : tid_inside;
}

/* Linux 6.13 and later. The headers of current C libraries lack it. */
typedef struct pidfd_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
} pidfd_info;

enum { PIDFD_HAS_EXIT = 1 << 3 };
#define PIDFD_GET_EXIT _IOWR(0xff, 11, pidfd_info)
_Static_assert(sizeof(pidfd_info) == 64, "the first version of the kernel's");

/* Reads the exit status of a process that its parent has waited for. */
static bool find_by_pidfd(int pidfd, int *wait_status)
{
    pidfd_info info = {.mask = PIDFD_HAS_EXIT};
    if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_EXIT, &info) != 0 ||
        (info.mask & PIDFD_HAS_EXIT) == 0) {
        return false;
    }
    *wait_status = info.exit_code;
    return true;
}

/* Reads the exit status of a process that its parent has not waited for. It is the last field. */
static bool find_in_proc(pid_t pid, int *wait_status)
{
    char text[STAT_BYTES];
    const char *state = read_stat(pid, text, sizeof(text));
    const char *last = state != NULL ? strrchr(state, ' ') : NULL;
    if (last == NULL || strchr("ZX", state[0]) == NULL) {
        return false;
    }
    *wait_status = (int)strtol(last, NULL, 10);
    return true;
}

bool sj_tracked_process_find_status(const sj_tracked_process *process, int *wait_status)
{
    return find_by_pidfd(process->pidfd, wait_status) || find_in_proc(process->pid, wait_status) ||
           find_by_pidfd(process->pidfd, wait_status);
}

bool sj_tracked_process_is_replaced(const sj_tracked_process *process)
{
    const sj_program_file now = read_program(process->pid);
    return now.device != process->program.device || now.inode != process->program.inode;
}

bool sj_tracked_process_has_executed(const sj_tracked_process *process)
{
    bool has = true;
    return process->is_only_forked && has_only_forked(process->pid, &has) && !has;
}
