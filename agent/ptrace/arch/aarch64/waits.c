#include "agent/ptrace/waits.h"

/* Not supported: x0 holds the result of an interrupted system call, and ptrace does not show the
 * argument that it replaced. */
sj_status sj_wait_repeat(pid_t tid)
{
    (void)tid;
    return SJ_EUNSUPPORTED;
}

bool sj_waits_are_repeatable(void)
{
    return false;
}
