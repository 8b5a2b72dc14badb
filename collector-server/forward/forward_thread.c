#include "collector-server/forward/forward_thread.h"

#include "proto/base/log.h"
#include "proto/base/units.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_S = 10, LONGEST_PAUSE_S = 60 };

struct sj_forward_thread {
    sj_forwarder *forwarder;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    atomic_bool stopping;
    char said[sizeof(((sj_error *)NULL)->text)]; /* the last error that was logged; "": none */
};

static void report(sj_forward_thread *self, sj_status status, uint64_t sent, const sj_error *error)
{
    if (status == SJ_OK) {
        if (self->said[0] != '\0') {
            sj_log(SJ_LOG_INFO, "forwarding", "continues");
        }
        if (sent != 0) {
            sj_log(SJ_LOG_INFO, "forwarding", "sent %s", SJ_COUNTED(sent, "session"));
        }
        self->said[0] = '\0';
    } else if (strcmp(self->said, error->text) != 0) {
        sj_log(SJ_LOG_WARN, "forwarding", "%s", error->text);
        snprintf(self->said, sizeof(self->said), "%s", error->text);
    }
}

static void pause_for(sj_forward_thread *self, unsigned seconds)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += seconds;
    pthread_mutex_lock(&self->lock);
    while (!atomic_load(&self->stopping) &&
           pthread_cond_timedwait(&self->stop, &self->lock, &deadline) == 0) {
    }
    pthread_mutex_unlock(&self->lock);
}

static void *run(void *held)
{
    sj_forward_thread *self = held;
    unsigned pause_s = LOOK_S;
    while (!atomic_load(&self->stopping)) {
        sj_error error = {0};
        uint64_t sent = 0;
        const sj_status status = sj_forwarder_round(self->forwarder, &sent, &error);
        if (atomic_load(&self->stopping)) {
            break;
        }
        report(self, status, sent, &error);
        if (status != SJ_OK) {
            pause_s = 2 * pause_s < LONGEST_PAUSE_S ? 2 * pause_s : LONGEST_PAUSE_S;
        } else {
            pause_s = LOOK_S;
        }
        if (status != SJ_OK || sent == 0) {
            pause_for(self, pause_s);
        }
    }
    return NULL;
}

static void free_thread(sj_forward_thread *self)
{
    sj_forwarder_close(self->forwarder);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->stop);
    free(self);
}

sj_status sj_forward_thread_start(const char *database, const sj_forward_target_kind *kind,
                                  const sj_forward_options *options, sj_forward_thread **thread,
                                  sj_error *error)
{
    sj_forward_thread *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->stop, NULL);
    sj_forward_options own = *options;
    own.stop = &made->stopping;
    sj_status status = sj_forwarder_open(database, kind, &own, &made->forwarder, error);
    if (status == SJ_OK && pthread_create(&made->thread, NULL, run, made) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot start the thread that forwards");
    }
    if (status != SJ_OK) {
        free_thread(made);
        return status;
    }
    pthread_setname_np(made->thread, "forward");
    *thread = made;
    return SJ_OK;
}

void sj_forward_thread_stop(sj_forward_thread *thread)
{
    if (thread == NULL) {
        return;
    }
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->stopping, true);
    pthread_cond_signal(&thread->stop);
    pthread_mutex_unlock(&thread->lock);
    pthread_join(thread->thread, NULL);
    free_thread(thread);
}
