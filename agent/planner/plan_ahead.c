#include "agent/planner/plan_ahead.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sj_plan_ahead {
    sj_planner_options options;
    char path[PATH_MAX];
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what is below */
    bool is_joined;
};

/* What cannot be planned, or stored, is planned again by whoever asks, who reports why. */
static void *plan_module(void *context)
{
    const sj_plan_ahead *ahead = context;
    sj_plan plan;
    if (sj_plan_make(&ahead->options, &plan, NULL) == SJ_OK) {
        sj_plan_free(&plan);
    }
    return NULL;
}

sj_status sj_plan_ahead_start(const sj_planner_options *options, sj_plan_ahead **ahead)
{
    if (strlen(options->module_path) >= PATH_MAX) {
        return SJ_ELIMIT;
    }
    sj_plan_ahead *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    snprintf(made->path, sizeof(made->path), "%s", options->module_path);
    made->options.module_path = made->path;
    pthread_mutex_init(&made->mutex, NULL);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&made->thread, NULL, plan_module, made);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        pthread_mutex_destroy(&made->mutex);
        free(made);
        return SJ_ENOMEM;
    }
    *ahead = made;
    return SJ_OK;
}

static void wait_for_end(sj_plan_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    if (!ahead->is_joined) {
        pthread_join(ahead->thread, NULL);
        ahead->is_joined = true;
    }
    pthread_mutex_unlock(&ahead->mutex);
}

void sj_plan_ahead_wait(sj_plan_ahead *ahead, const char *path)
{
    if (ahead != NULL && strcmp(ahead->path, path) == 0) {
        wait_for_end(ahead);
    }
}

void sj_plan_ahead_free(sj_plan_ahead *ahead)
{
    if (ahead != NULL) {
        wait_for_end(ahead);
        pthread_mutex_destroy(&ahead->mutex);
        free(ahead);
    }
}
