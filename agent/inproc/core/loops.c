/* The monitor of event loops. It records when threads begin and end to wait for events, so that the
 * recorder knows the duration of each turn of a loop. References to poll, epoll_wait, select and
 * similar functions are rebound in all modules. */
#include "agent/inproc/core/monitor.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/recorder.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* real_NAME is the C library's function. It is set before its replacement recorded_NAME can be
 * called. Cancellation and signal handlers may jump over the replacement's frame, which does not
 * own anything. */
#define RECORDED(name, parameters, arguments)                                                      \
    static int(*real_##name) parameters;                                                           \
    static int recorded_##name parameters                                                          \
    {                                                                                              \
        sj_recorder_request(SJ_REQUEST_WAIT);                                                      \
        const int result = real_##name arguments;                                                  \
        sj_recorder_request(SJ_REQUEST_WOKE);                                                      \
        return result;                                                                             \
    }

RECORDED(poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms))
RECORDED(poll_chk, (struct pollfd * fds, nfds_t count, int ms, size_t bytes),
         (fds, count, ms, bytes))
RECORDED(ppoll,
         (struct pollfd * fds, nfds_t count, const struct timespec *wait, const sigset_t *mask),
         (fds, count, wait, mask))
RECORDED(ppoll_chk,
         (struct pollfd * fds, nfds_t count, const struct timespec *wait, const sigset_t *mask,
          size_t bytes),
         (fds, count, wait, mask, bytes))
RECORDED(select, (int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *wait),
         (n, in, out, except, wait))
RECORDED(pselect,
         (int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *wait,
          const sigset_t *mask),
         (n, in, out, except, wait, mask))
RECORDED(epoll_wait, (int epoll, struct epoll_event *events, int max, int ms),
         (epoll, events, max, ms))
RECORDED(epoll_pwait,
         (int epoll, struct epoll_event *events, int max, int ms, const sigset_t *mask),
         (epoll, events, max, ms, mask))
RECORDED(epoll_pwait2,
         (int epoll, struct epoll_event *events, int max, const struct timespec *wait,
          const sigset_t *mask),
         (epoll, events, max, wait, mask))

#define WAITING_FUNCTION(name)                                                                     \
    {                                                                                              \
#name, (uint64_t *)&real_##name, (uint64_t)(uintptr_t)recorded_##name                      \
    }

static const struct {
    const char *name;
    uint64_t *real;
    uint64_t replacement;
} functions[] = {
    WAITING_FUNCTION(poll),
    WAITING_FUNCTION(ppoll),
    WAITING_FUNCTION(select),
    WAITING_FUNCTION(pselect),
    WAITING_FUNCTION(epoll_wait),
    WAITING_FUNCTION(epoll_pwait),
    WAITING_FUNCTION(epoll_pwait2),
    {"__poll_chk", (uint64_t *)&real_poll_chk, (uint64_t)(uintptr_t)recorded_poll_chk},
    {"__ppoll_chk", (uint64_t *)&real_ppoll_chk, (uint64_t)(uintptr_t)recorded_ppoll_chk}};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void rebind_modules(void)
{
    sj_rebinding rebindings[FUNCTIONS];
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        if (*functions[i].real == 0) {
            *functions[i].real = sj_rebind_find(functions[i].name);
        }
        rebindings[i] = (sj_rebinding){.name = functions[i].name,
                                       .real = *functions[i].real,
                                       .replacement = functions[i].replacement};
    }
    (void)sj_rebind(rebindings, FUNCTIONS, false);
}

static bool start_loops(void)
{
    rebind_modules();
    return true;
}

/* It has no `stop`: a waiting thread returns to a frame of the agent at any time. */
const sj_monitor sj_monitor_loops = {.bit = SJ_LINK_RUNTIME_LOOPS,
                                     .name = "event loops",
                                     .start = start_loops,
                                     .on_modules = rebind_modules};
