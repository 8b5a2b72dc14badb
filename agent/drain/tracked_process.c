#include "agent/drain/tracked_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

void sj_tracked_process_open(pid_t pid, sj_tracked_process *process)
{
    process->pid = pid;
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
