/* Waits of a stopped thread that the kernel does not restart after the stop. Each arch folder has
 * one implementation. */
#ifndef SJ_AGENT_PTRACE_WAITS_H
#define SJ_AGENT_PTRACE_WAITS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/* Makes a stopped thread repeat a wait when it is resumed, if the stop has made the wait return
 * EINTR. The kernel does not restart such waits itself: epoll_wait, semop, sigtimedwait and others,
 * and calls on sockets with a timeout. A signal with a handler ends the wait, also if it arrives
 * before the thread runs. The timeout of the wait begins again. All stops of tracee.h call it. The
 * thread must not be stopped at the entry or exit of a system call (PTRACE_SYSCALL). Returns
 * SJ_EUNSUPPORTED if the kernel of this machine does not report what is needed, and SJ_ECLOSED if
 * the thread has ended. */
SJ_MUST_CHECK sj_status sj_wait_repeat(pid_t tid);

/* True if sj_wait_repeat works on this machine. */
bool sj_waits_are_repeatable(void);

#endif
