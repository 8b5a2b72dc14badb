/* Design notes
 *
 * In NNG 1.5.2 nng_close may hang. It waits until the reaper, one thread for all sockets of the
 * process, has removed the socket's pipes. For each pipe the reaper stops the receive of REQ, which
 * ends when the transport's receive does. The transport marks its receive as stopped when the pipe
 * is closed. If it then asks for more bytes (the length of a message was just read), NNG drops that
 * request silently, so the receive never ends. No order of closing dialers, contexts and pipes
 * prevents it, because only NNG sees when the bytes arrive.
 *
 * So the close runs in a thread of its own, which is left behind if it takes too long. That is
 * harmless in a process that ends: `exit` does not wait for threads, and NNG does nothing at
 * exit. */
#include "agent/uplink/socket_close.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { CLOSE_S = 2 };

typedef struct closing {
    nng_socket socket;
    pthread_mutex_t mutex; /* Protects all members below. */
    pthread_cond_t changed;
    bool is_closed;
    bool is_left; /* True if the closer no longer waits: the thread frees this. */
} closing;

static closing *new_closing(nng_socket socket)
{
    closing *made = calloc(1, sizeof(*made));
    pthread_condattr_t clock;
    if (made == NULL) {
        return NULL;
    }
    made->socket = socket;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    return made;
}

static void free_closing(closing *ended)
{
    if (ended != NULL) {
        pthread_cond_destroy(&ended->changed);
        pthread_mutex_destroy(&ended->mutex);
        free(ended);
    }
}

static void *run(void *argument)
{
    closing *closed = argument;
    nng_close(closed->socket);
    pthread_mutex_lock(&closed->mutex);
    closed->is_closed = true;
    const bool is_left = closed->is_left;
    pthread_cond_signal(&closed->changed);
    pthread_mutex_unlock(&closed->mutex);
    if (is_left) {
        free_closing(closed);
    }
    return NULL;
}

/* Starts the thread with all signals blocked, so that it never handles signals of the program. */
static bool start_thread(closing *started, pthread_t *thread)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(thread, NULL, run, started);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result == 0;
}

static bool wait_for_close(closing *awaited)
{
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CLOSE_S;
    pthread_mutex_lock(&awaited->mutex);
    while (!awaited->is_closed && result == 0) {
        result = pthread_cond_timedwait(&awaited->changed, &awaited->mutex, &until);
    }
    const bool is_closed = awaited->is_closed;
    awaited->is_left = !is_closed;
    pthread_mutex_unlock(&awaited->mutex);
    return is_closed;
}

bool sj_socket_close(nng_socket socket)
{
    pthread_t thread;
    closing *begun = new_closing(socket);
    if (begun == NULL || !start_thread(begun, &thread)) {
        free_closing(begun);
        nng_close(socket);
        return true;
    }
    if (!wait_for_close(begun)) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    free_closing(begun);
    return true;
}
