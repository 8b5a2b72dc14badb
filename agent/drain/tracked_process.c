#include "agent/drain/tracked_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* read_program returns what identifies the file that a process runs; 0, 0: it cannot be told. */
static sj_program_file read_program(pid_t pid)
{
    char path[64];
    struct stat facts;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return stat(path, &facts) == 0
               ? (sj_program_file){.device = facts.st_dev, .inode = facts.st_ino}
               : (sj_program_file){0};
}

void sj_tracked_process_open(pid_t pid, sj_tracked_process *process)
{
    process->pid = pid;
    process->program = read_program(pid);
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

bool sj_tracked_process_is_replaced(const sj_tracked_process *process)
{
    const sj_program_file now = read_program(process->pid);
    return now.device != process->program.device || now.inode != process->program.inode;
}
