#include "agent/planner/plan_ahead.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Planning a module uses several threads and much memory, so only two modules are planned at
 * once. */
enum { PLANS_AT_ONCE = 2 };

static pthread_mutex_t places_mutex =
    PTHREAD_MUTEX_INITIALIZER; /* guards places_used and sj_plan_ahead.is_cancelled */
static pthread_cond_t place_freed = PTHREAD_COND_INITIALIZER;
static unsigned places_used;

struct sj_plan_ahead {
    sj_planner_options options;
    char path[PATH_MAX];
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t ended;
    bool has_ended;
    bool is_cancelled; /* guarded by places_mutex: the plan need not start any more */
};

/* Waits until fewer than PLANS_AT_ONCE modules are being planned. Returns false if the plan was
 * cancelled meanwhile. */
static bool claim_place(const sj_plan_ahead *ahead)
{
    pthread_mutex_lock(&places_mutex);
    while (places_used == PLANS_AT_ONCE && !ahead->is_cancelled) {
        pthread_cond_wait(&place_freed, &places_mutex);
    }
    const bool has_place = places_used < PLANS_AT_ONCE;
    places_used += has_place;
    pthread_mutex_unlock(&places_mutex);
    return has_place;
}

static void free_place(void)
{
    pthread_mutex_lock(&places_mutex);
    places_used--;
    pthread_cond_broadcast(&place_freed);
    pthread_mutex_unlock(&places_mutex);
}

static void cancel(sj_plan_ahead *ahead)
{
    pthread_mutex_lock(&places_mutex);
    ahead->is_cancelled = true;
    pthread_cond_broadcast(&place_freed);
    pthread_mutex_unlock(&places_mutex);
}

/* Plans a module, in a thread of its own. Ignores errors: the next caller of sj_plan_make plans
 * again and reports the reason. */
static void *plan_module(void *context)
{
    sj_plan_ahead *ahead = context;
    sj_plan plan;
    if (claim_place(ahead)) {
        if (sj_plan_make(&ahead->options, &plan, NULL) == SJ_OK) {
            sj_plan_free(&plan);
        }
        free_place();
    }
    pthread_mutex_lock(&ahead->mutex);
    ahead->has_ended = true;
    pthread_cond_broadcast(&ahead->ended);
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

sj_status sj_plan_ahead_start(const sj_planner_options *options, sj_plan_ahead **ahead)
{
    if (strlen(options->module_path) >= PATH_MAX) {
        return SJ_ELIMIT;
    }
    sj_plan_ahead *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    created->options = *options;
    snprintf(created->path, sizeof(created->path), "%s", options->module_path);
    created->options.module_path = created->path;
    pthread_mutex_init(&created->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&created->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&created->thread, NULL, plan_module, created);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        pthread_cond_destroy(&created->ended);
        pthread_mutex_destroy(&created->mutex);
        free(created);
        return SJ_ENOMEM;
    }
    *ahead = created;
    return SJ_OK;
}

bool sj_plan_ahead_is_of(const sj_plan_ahead *ahead, const char *path)
{
    return ahead != NULL && strcmp(ahead->path, path) == 0;
}

const char *sj_plan_ahead_path(const sj_plan_ahead *ahead)
{
    return ahead->path;
}

bool sj_plan_ahead_wait(sj_plan_ahead *ahead, uint32_t most_ms)
{
    enum { MS_PER_S = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += most_ms / MS_PER_S;
    until.tv_nsec += (long)(most_ms % MS_PER_S) * NS_PER_MS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    pthread_mutex_lock(&ahead->mutex);
    int problem = 0;
    while (!ahead->has_ended && problem == 0) {
        problem = pthread_cond_timedwait(&ahead->ended, &ahead->mutex, &until);
    }
    const bool has_ended = ahead->has_ended;
    pthread_mutex_unlock(&ahead->mutex);
    return has_ended;
}

void sj_plan_ahead_free(sj_plan_ahead *ahead)
{
    if (ahead != NULL) {
        cancel(ahead);
        pthread_join(ahead->thread, NULL);
        pthread_cond_destroy(&ahead->ended);
        pthread_mutex_destroy(&ahead->mutex);
        free(ahead);
    }
}
