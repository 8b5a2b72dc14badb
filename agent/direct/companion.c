/* Design notes
 *
 * This library starts the recorder's thread before the program's first instruction. The agent uses
 * the same socket to it as to a recorder outside.
 *
 * The program waits for the thread twice, each time with a limit. At the start it waits until the
 * thread listens. At the end it waits until the last calls are delivered.
 *
 * A forked child does not have the thread. It joins its parent's session over the socket while the
 * parent lives. So does a program that a child executes. If the process itself executes another
 * program, its session ends, and the new program starts its own. */
#include "agent/inproc/core/recorder_peer.h"

#include "agent/direct/direct.h"
#include "agent/direct/settings.h"
#include "agent/host/clock.h"
#include "agent/inproc/link/environment.h"

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

/* END_MS: time to write the content of the rings to the spool at the end, which takes
 * milliseconds. */
enum { START_MS = 30000, END_MS = 10000, STACK_BYTES = 1024 * 1024 };

typedef enum direct_phase { PHASE_STARTING, PHASE_LISTENING, PHASE_ENDED } direct_phase;

static sj_direct_settings settings;
static _Atomic uint32_t phase; /* a direct_phase; only grows; threads wait for it with a futex */
static char runtime_directory[PATH_MAX]; /* set before LISTENING */
static atomic_bool is_over;              /* the program ends, or continues without a recording */
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

/* Waits until the phase is later than `before`. Returns false after the time limit.
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

/* Starts the thread with all signals blocked, so that it never receives signals of the program. */
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
        return false; /* its caller must not choose where files are written */
    }
    if (!sj_direct_settings_consume(environment, &settings)) {
        /* A program executed by a recorded program joins its session. */
        return sj_environment_consume(environment, runtime, runtime_bytes);
    }
    const int kept_errno = errno;
    bool is_there = false;
    if (environ == NULL) {
        environ = environment; /* libc sets the same value later */
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
    /* The thread itself comes here if it was the program's last thread. */
    if (owner != getpid() || pthread_equal(thread, pthread_self())) {
        return;
    }
    const int kept_errno = errno;
    atomic_store(&is_over, true);
    (void)!wait_beyond(PHASE_LISTENING, sj_direct_wait_ms(&settings) + END_MS);
    errno = kept_errno;
}

/* Replace libc's functions, for programs that end without destructors, such as shells. They stay
 * async-signal-safe, and in children do the same as libc's. */
__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    sj_recorder_peer_part();
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

__attribute__((visibility("default"), noreturn, alias("_exit"))) void _Exit(int status);
