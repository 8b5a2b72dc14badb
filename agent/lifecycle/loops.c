#include "agent/lifecycle/loops.h"

#include "agent/hooks/rebind.h"
#include "agent/recorder/recorder.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* The functions of the C library, found before the first replacement is reached. A frame of ours
 * lies below the wait: cancellation and signal handlers that leave it by a jump pass it, as it
 * holds nothing. */
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
static int (*real_pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                           const sigset_t *);
static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
static int (*real_epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *,
                                const sigset_t *);
static int (*real_poll_chk)(struct pollfd *, nfds_t, int, size_t);
static int (*real_ppoll_chk)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *,
                             size_t);

static int woke(int result)
{
    sj_recorder_request(SJ_REQUEST_WOKE);
    return result;
}

static int noted_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_poll(polled, count, timeout_ms));
}

static int noted_poll_chk(struct pollfd *polled, nfds_t count, int timeout_ms, size_t bytes)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_poll_chk(polled, count, timeout_ms, bytes));
}

static int noted_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_ppoll(polled, count, timeout, mask));
}

static int noted_ppoll_chk(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                           const sigset_t *mask, size_t bytes)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_ppoll_chk(polled, count, timeout, mask, bytes));
}

static int noted_select(int count, fd_set *readable, fd_set *writable, fd_set *exceptions,
                        struct timeval *timeout)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_select(count, readable, writable, exceptions, timeout));
}

static int noted_pselect(int count, fd_set *readable, fd_set *writable, fd_set *exceptions,
                         const struct timespec *timeout, const sigset_t *mask)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_pselect(count, readable, writable, exceptions, timeout, mask));
}

static int noted_epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout_ms)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_epoll_wait(epoll, events, capacity, timeout_ms));
}

static int noted_epoll_pwait(int epoll, struct epoll_event *events, int capacity, int timeout_ms,
                             const sigset_t *mask)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_epoll_pwait(epoll, events, capacity, timeout_ms, mask));
}

static int noted_epoll_pwait2(int epoll, struct epoll_event *events, int capacity,
                              const struct timespec *timeout, const sigset_t *mask)
{
    sj_recorder_request(SJ_REQUEST_WAIT);
    return woke(real_epoll_pwait2(epoll, events, capacity, timeout, mask));
}

#define WAITING_FUNCTION(name)                                                                     \
    {                                                                                              \
#name, (uint64_t *)&real_##name, (uint64_t)(uintptr_t)noted_##name                         \
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
    {"__poll_chk", (uint64_t *)&real_poll_chk, (uint64_t)(uintptr_t)noted_poll_chk},
    {"__ppoll_chk", (uint64_t *)&real_ppoll_chk, (uint64_t)(uintptr_t)noted_ppoll_chk}};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

void sj_loops_follow(void)
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
