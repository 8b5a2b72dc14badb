/* Design notes
 *
 * The agent of this library meets its companion in a thread that is started here, before the
 * program's first instruction, and talks with it over the same socket as with one outside. The
 * program waits for the thread twice, never for ever: until it listens, and, when it ends, until
 * the last calls are delivered. A forked child has no such thread: it joins its parent's session
 * over the socket, as long as the parent lives, and so does a program that a child runs. When the
 * process itself becomes another program, its session ends, and that one begins its own. */
#include "agent/lifecycle/companion.h"

#include "agent/direct/direct.h"
#include "agent/direct/settings.h"
#include "agent/lifecycle/environment.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { START_MS = 30000, STACK_BYTES = 1024 * 1024 };

typedef enum direct_phase { PHASE_STARTING, PHASE_LISTENING, PHASE_ENDED } direct_phase;

static sj_direct_settings settings;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t changed;
static direct_phase phase;
static char runtime_directory[PATH_MAX]; /* set when LISTENING */
static atomic_bool is_over;              /* the program ends, or went on without */
static pid_t owner;                      /* the process that has the thread; 0: none */
static pthread_t thread;

static void set_phase(direct_phase next, const char *runtime)
{
    pthread_mutex_lock(&mutex);
    phase = next;
    if (runtime != NULL) {
        strncpy(runtime_directory, runtime, sizeof(runtime_directory) - 1);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void announce(const char *runtime)
{
    set_phase(PHASE_LISTENING, runtime);
}

static void *run(void *arguments)
{
    sj_direct_record(&settings, arguments, announce, &is_over);
    set_phase(PHASE_ENDED, NULL);
    return NULL;
}

/* wait_beyond waits until the phase has changed from `before`; false when it has not in time. */
static bool wait_beyond(direct_phase before, uint64_t limit_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += (time_t)(limit_ms / 1000);
    deadline.tv_nsec += (long)(limit_ms % 1000 * 1000000);
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&mutex);
    int result = 0;
    while (phase <= before && result == 0) {
        result = pthread_cond_timedwait(&changed, &mutex, &deadline);
    }
    const bool is_beyond = phase > before;
    pthread_mutex_unlock(&mutex);
    return is_beyond;
}

/* start_thread: signals of the program are never taken by a thread of ours. */
static bool start_thread(char **arguments)
{
    sigset_t all;
    sigset_t before;
    pthread_attr_t attributes;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &clock);
    pthread_condattr_destroy(&clock);
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

bool sj_companion_meet(char **arguments, char **environment, char *runtime, size_t runtime_bytes)
{
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
        pthread_mutex_lock(&mutex);
        is_there = phase == PHASE_LISTENING && strlen(runtime_directory) < runtime_bytes;
        if (is_there) {
            strcpy(runtime, runtime_directory);
        }
        pthread_mutex_unlock(&mutex);
    }
    if (!is_there) {
        atomic_store(&is_over, true);
    }
    errno = kept_errno;
    return is_there;
}

void sj_companion_exec(const char *const **entries)
{
    *entries = NULL;
    if (owner == getpid()) {
        sj_companion_part();
        *entries = settings.entries;
    }
}

void sj_companion_part(void)
{
    /* The thread itself comes here when it was the last of the program. */
    if (owner != getpid() || pthread_equal(thread, pthread_self())) {
        return;
    }
    const int kept_errno = errno;
    atomic_store(&is_over, true);
    (void)!wait_beyond(PHASE_LISTENING, sj_direct_wait_ms(&settings));
    errno = kept_errno;
}
