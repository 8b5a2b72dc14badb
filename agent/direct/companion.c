/* Design notes
 *
 * The agent of this library meets its recorder in a thread that is started here, before the
 * program's first instruction, and talks with it over the same socket as with one outside. The
 * program waits for the thread twice, never forever: until it listens, and, when it ends, until
 * the last calls are delivered. A forked child has no such thread: it joins its parent's session
 * over the socket, as long as the parent lives, and so does a program that a child runs. When the
 * process itself becomes another program, its session ends, and that one begins its own. */
#include "agent/inproc/core/recorder_peer.h"

#include "agent/direct/direct.h"
#include "agent/direct/settings.h"
#include "agent/host/clock.h"
#include "agent/inproc/core/environment.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* END_MS: to write what the rings hold to the spool, which takes milliseconds, when it ends. */
enum { START_MS = 30000, END_MS = 10000, STACK_BYTES = 1024 * 1024 };

typedef enum direct_phase { PHASE_STARTING, PHASE_LISTENING, PHASE_ENDED } direct_phase;

static sj_direct_settings settings;
static _Atomic uint32_t phase;           /* direct_phase; only grows; waited for as a futex */
static char runtime_directory[PATH_MAX]; /* set before LISTENING */
static atomic_bool is_over;              /* the program ends, or went on without */
static pid_t owner;                      /* the process that has the thread; 0: none */
static pthread_t thread;

static void set_phase(direct_phase next)
{
    atomic_store(&phase, next);
    (void)syscall(SYS_futex, &phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void announce(const char *runtime)
{
    strncpy(runtime_directory, runtime, sizeof(runtime_directory) - 1);
    set_phase(PHASE_LISTENING);
}

static void *run(void *arguments)
{
    sj_direct_record(&settings, arguments, announce, &is_over);
    set_phase(PHASE_ENDED);
    return NULL;
}

/* wait_beyond waits until the phase has changed from `before`; false when it has not in time.
 * Async-signal-safe. */
static bool wait_beyond(direct_phase before, uint64_t limit_ms)
{
    const uint64_t end_ns = sj_clock_ns(CLOCK_MONOTONIC) + limit_ms * UINT64_C(1000000);
    for (;;) {
        const uint32_t seen = atomic_load(&phase);
        const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
        if (seen > before || now_ns >= end_ns) {
            return seen > before;
        }
        const struct timespec left = {.tv_sec = (time_t)((end_ns - now_ns) / 1000000000),
                                      .tv_nsec = (long)((end_ns - now_ns) % 1000000000)};
        (void)syscall(SYS_futex, &phase, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0);
    }
}

/* start_thread: signals of the program are never taken by a thread of ours. */
static bool start_thread(char **arguments)
{
    sigset_t all;
    sigset_t before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&thread, &attributes, run, arguments);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return result == 0;
}

bool sj_recorder_peer_meet(char **arguments, char **environment, char *runtime,
                           size_t runtime_bytes)
{
    if (getauxval(AT_SECURE) != 0) {
        return false; /* its caller may not choose where files are written */
    }
    if (!sj_direct_settings_take(environment, &settings)) {
        /* A program that a recorded one runs joins its session. */
        return sj_environment_take(environment, runtime, runtime_bytes);
    }
    const int kept_errno = errno;
    bool is_there = false;
    if (environ == NULL) {
        environ = environment; /* libc does the same, later, with the same value */
    }
    owner = getpid();
    if (!start_thread(arguments)) {
        owner = 0;
    } else if (wait_beyond(PHASE_STARTING, START_MS)) {
        is_there =
            atomic_load(&phase) == PHASE_LISTENING && strlen(runtime_directory) < runtime_bytes;
        if (is_there) {
            memcpy(runtime, runtime_directory, strlen(runtime_directory) + 1);
        }
    }
    if (!is_there) {
        atomic_store(&is_over, true);
    }
    (void)!at_quick_exit(sj_recorder_peer_part);
    errno = kept_errno;
    return is_there;
}

void sj_recorder_peer_exec(const char *const **entries)
{
    *entries = NULL;
    if (owner == getpid()) {
        sj_recorder_peer_part();
        *entries = settings.entries;
    }
}

void sj_recorder_peer_part(void)
{
    /* The thread itself comes here when it was the last of the program. */
    if (owner != getpid() || pthread_equal(thread, pthread_self())) {
        return;
    }
    const int kept_errno = errno;
    atomic_store(&is_over, true);
    (void)!wait_beyond(PHASE_LISTENING, sj_direct_wait_ms(&settings) + END_MS);
    errno = kept_errno;
}

/* These stand before libc's, for programs that leave without destructors: shells, for one. Still
 * async-signal-safe, and in children nothing but libc's. */
__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    sj_recorder_peer_part();
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

__attribute__((visibility("default"), noreturn, alias("_exit"))) void _Exit(int status);
