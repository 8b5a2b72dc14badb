/* The uplink's thread, and the requests of its owner. A step handles the channel's events, then
 * sends frames. One thread runs the steps: the uplink's own thread or, without threads, the
 * owner's.
 */
#include "agent/uplink/uplink.h"

#include "agent/uplink/moment.h"
#include "agent/uplink/uplink_state.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_WINDOW = 8, DEFAULT_RESEND_MS = 10000 };

static void step(sj_uplink *uplink)
{
    sj_spool_counters counters;
    atomic_store(&uplink->notified, false);
    sj_uplink_handle_events(uplink);
    sj_uplink_send(uplink);
    sj_spool_get_counters(uplink->spool, &counters);
    uplink->idle = counters.pending_bytes == 0 && sj_uplink_count_in_flight(uplink) == 0;
    pthread_cond_broadcast(&uplink->changed);
}

/* Returns the end of the running pause, or NULL if only events and wake-ups need a step. */
static const struct timespec *end_of_pause(const sj_uplink *uplink)
{
    return uplink->pause_ms != 0 && !sj_moment_has_passed(&uplink->resume) ? &uplink->resume : NULL;
}

static void *run(void *argument)
{
    sj_uplink *uplink = argument;
    pthread_mutex_lock(&uplink->lock);
    while (!uplink->stopping) {
        step(uplink);
        pthread_mutex_unlock(&uplink->lock);
        uplink->kind->wait(uplink->channel, end_of_pause(uplink));
        pthread_mutex_lock(&uplink->lock);
    }
    pthread_mutex_unlock(&uplink->lock);
    return NULL;
}

void sj_uplink_step(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    step(uplink);
    pthread_mutex_unlock(&uplink->lock);
}

static void free_uplink(sj_uplink *uplink)
{
    if (uplink->channel != NULL) {
        uplink->kind->close(uplink->channel);
    }
    pthread_cond_destroy(&uplink->changed);
    pthread_mutex_destroy(&uplink->lock);
    sojourn__hello__free_unpacked(uplink->about, NULL);
    free(uplink->hello);
    free(uplink);
}

static sj_status connect_uplink(sj_uplink *uplink, const sj_uplink_options *options,
                                sj_error *error)
{
    const sj_channel_options channel = {.url = options->url,
                                        .certificate = options->certificate,
                                        .context = options->channel_context,
                                        .slots = uplink->window_max,
                                        .resend_ms = options->resend_ms != 0 ? options->resend_ms
                                                                             : DEFAULT_RESEND_MS};
    SJ_TRY(uplink->kind->open(&channel, &uplink->channel, error));
    if (!uplink->threadless && pthread_create(&uplink->thread, NULL, run, uplink) != 0) {
        return sj_fail(error, SJ_EIO, "cannot start the uplink's thread");
    }
    uplink->thread_started = !uplink->threadless;
    return SJ_OK;
}

sj_status sj_uplink_start(sj_spool *spool, const sj_uplink_options *options, sj_uplink **uplink,
                          sj_error *error)
{
    sj_frame_view hello;
    if (options->url == NULL || options->channel == NULL ||
        sj_frame_read(options->hello, &hello) != SJ_OK || hello.type != SJ_FRAME_HELLO) {
        return sj_fail(error, SJ_EINVAL, "the uplink needs an address and a HELLO frame");
    }
    sj_uplink *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->hello = malloc(options->hello.size)) == NULL ||
        (made->about = sojourn__hello__unpack(NULL, hello.header.size, hello.header.data)) ==
            NULL) {
        free(made != NULL ? made->hello : NULL);
        free(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for the uplink");
    }
    memcpy(made->hello, options->hello.data, options->hello.size);
    made->hello_bytes = options->hello.size;
    made->spool = spool;
    made->window_max = options->window == 0                     ? DEFAULT_WINDOW
                       : options->window > SJ_UPLINK_MAX_WINDOW ? SJ_UPLINK_MAX_WINDOW
                                                                : options->window;
    made->window = 1;
    made->waits = options->waits;
    made->kind = options->channel;
    made->threadless = options->threadless;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    sj_spool_rewind(spool);
    const sj_status status = connect_uplink(made, options, error);
    if (status != SJ_OK) {
        free_uplink(made);
        return status;
    }
    *uplink = made;
    return SJ_OK;
}

void sj_uplink_get_status(sj_uplink *uplink, sj_uplink_status *status)
{
    pthread_mutex_lock(&uplink->lock);
    *status = uplink->status;
    pthread_mutex_unlock(&uplink->lock);
}

/* Makes the sender run a step. The caller holds the lock; wake releases it. */
static void wake(sj_uplink *uplink)
{
    uplink->idle = false;
    pthread_mutex_unlock(&uplink->lock);
    uplink->kind->wake(uplink->channel);
}

void sj_uplink_release(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    uplink->waits = false;
    wake(uplink);
}

void sj_uplink_wake(sj_uplink *uplink)
{
    if (!atomic_exchange(&uplink->notified, true)) {
        uplink->kind->wake(uplink->channel);
    }
}

/* Waits until the thread has run a step. Without a thread, runs a step and waits for the next
 * event. Returns false if `deadline` has passed. */
static bool wait_for_step(sj_uplink *uplink, const struct timespec *deadline)
{
    if (!uplink->threadless) {
        return (deadline == NULL
                    ? pthread_cond_wait(&uplink->changed, &uplink->lock)
                    : pthread_cond_timedwait(&uplink->changed, &uplink->lock, deadline)) == 0;
    }
    if (deadline != NULL && sj_moment_has_passed(deadline)) {
        return false;
    }
    step(uplink);
    if (!uplink->idle && uplink->status.state != SJ_UPLINK_REFUSED) {
        const struct timespec *pause = end_of_pause(uplink);
        const bool pause_first =
            pause != NULL && (deadline == NULL || sj_moment_is_before(pause, deadline));
        uplink->kind->wait(uplink->channel, pause_first ? pause : deadline);
    }
    return true;
}

sj_status sj_uplink_drain(sj_uplink *uplink, int64_t timeout_ms)
{
    struct timespec deadline;
    deadline = sj_moment_after_ms(timeout_ms < 0 ? 0 : timeout_ms);
    sj_status status = SJ_OK;
    pthread_mutex_lock(&uplink->lock);
    wake(uplink);
    pthread_mutex_lock(&uplink->lock);
    while (!uplink->idle && status == SJ_OK) {
        if (uplink->status.state == SJ_UPLINK_REFUSED) {
            status = SJ_EPERM;
        } else if (!wait_for_step(uplink, timeout_ms < 0 ? NULL : &deadline)) {
            status = uplink->idle ? SJ_OK : SJ_ETIMEDOUT;
        }
    }
    pthread_mutex_unlock(&uplink->lock);
    return status;
}

void sj_uplink_stop(sj_uplink *uplink)
{
    if (uplink == NULL) {
        return;
    }
    pthread_mutex_lock(&uplink->lock);
    uplink->stopping = true;
    pthread_mutex_unlock(&uplink->lock);
    if (uplink->thread_started) {
        uplink->kind->wake(uplink->channel);
        pthread_join(uplink->thread, NULL);
    }
    free_uplink(uplink);
}
