#include "agent/ptrace/waits.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

/* True for calls that return EINTR after a stop, even if no signal handler has run. Calls on
 * sockets do so if the socket has a time limit (SO_RCVTIMEO, SO_SNDTIMEO). All have done nothing
 * yet if they return EINTR, so they can be repeated. */
static bool is_wait(uint64_t number)
{
    static const uint64_t numbers[] = {
        SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,   SYS_semop,   SYS_semtimedop,
        SYS_rt_sigtimedwait, SYS_msgrcv,       SYS_msgsnd,         SYS_read,    SYS_readv,
        SYS_write,           SYS_writev,       SYS_recvfrom,       SYS_recvmsg, SYS_recvmmsg,
        SYS_sendto,          SYS_sendmsg,      SYS_sendmmsg,       SYS_accept,  SYS_accept4,
        SYS_connect,         SYS_io_getevents, SYS_io_uring_enter, SYS_preadv2, SYS_pwritev2,
        SYS_sendfile,        SYS_splice};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (number == numbers[i]) {
            return true;
        }
    }
    return false;
}

/* Gives the call the result that makes the kernel decide when the thread runs again: EINTR if a
 * signal handler runs, else it repeats the call. So a signal that arrives now ends the wait. */
sj_status sj_wait_repeat(pid_t tid)
{
    enum { ERESTARTNOHAND = 514 }; /* Only the kernel knows it. */
    struct user_regs_struct now;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &now) != 0) {
        return SJ_ECLOSED;
    }
    if ((int64_t)now.rax != -EINTR || !is_wait(now.orig_rax)) {
        return SJ_OK;
    }
    now.rax = (uint64_t)(int64_t)-ERESTARTNOHAND;
    return ptrace(PTRACE_SETREGS, tid, NULL, &now) == 0 ? SJ_OK : SJ_ECLOSED;
}

bool sj_waits_are_repeatable(void)
{
    return true;
}
