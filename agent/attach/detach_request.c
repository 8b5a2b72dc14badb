#include "agent/attach/detach_request.h"

#include "agent/ptrace/proc_status.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { WAIT_ATTEMPTS = 600, PAUSE_NS = 50000000 };

/* Sends SIGTERM to the recorder, so that the session ends properly. Returns SJ_ETIMEDOUT if the
 * recorder does not leave the process within 30 s, and SJ_EPERM at once if this user may not signal
 * it. */
static sj_status ask_recorder(pid_t pid, pid_t recorder, sj_error *error)
{
    sj_recorded recorded;
    if (kill(recorder, SIGTERM) != 0) {
        return errno == ESRCH ? SJ_OK
                              : sj_fail(error, SJ_EPERM,
                                        "the recorder, process %d, belongs to another user; "
                                        "detach as that user or as root",
                                        (int)recorder);
    }
    for (int i = 0; i < WAIT_ATTEMPTS; i++) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
        if (sj_detach_find(pid, &recorded, NULL) != SJ_OK ||
            (recorded.recorder != recorder && !recorded.is_silent)) {
            return SJ_OK;
        }
    }
    return sj_fail(error, SJ_ETIMEDOUT, "the recorder, process %d, does not end", (int)recorder);
}

sj_status sj_detach(pid_t pid, sj_detach_report *report, sj_error *error)
{
    sj_proc_status facts;
    *report = (sj_detach_report){0};
    const sj_recorded *recorded = &report->recorded;
    if (sj_proc_status_read(pid, &facts) != SJ_OK) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no process %d", (int)pid);
    }
    SJ_TRY(sj_detach_find(pid, &report->recorded, error));
    if (!recorded->has_agent) {
        return SJ_OK;
    }
    if (recorded->is_silent) {
        return sj_fail(error, SJ_ETIMEDOUT,
                       "the recorder of process %d does not answer; if it is stopped, "
                       "`kill -CONT` it",
                       (int)pid);
    }
    if (recorded->recorder != 0 && recorded->is_launched) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d was started under trace by process %d, which records it to its "
                       "end; to end that, press Ctrl-C twice there, or use `stop` for a device",
                       (int)pid, (int)recorded->recorder);
    }
    if (recorded->recorder != 0) {
        SJ_TRY(ask_recorder(pid, recorded->recorder, error));
    }
    return sj_detach_process(pid, &report->process, error);
}
