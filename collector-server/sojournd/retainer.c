#include "collector-server/sojournd/retainer.h"

#include "collector-server/maintenance/removal.h"
#include "collector-server/query/query.h"
#include "collector-server/store/database.h"
#include "proto/base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sj_retainer {
    sqlite3 *database;
    sj_retention_rule *rules;
    size_t rule_count;
    unsigned period_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopping;
};

static bool may_continue(void *held, int64_t session_id, int64_t bytes)
{
    sj_retainer *retainer = held;
    pthread_mutex_lock(&retainer->lock);
    const bool stopping = retainer->stopping;
    pthread_mutex_unlock(&retainer->lock);
    if (!stopping) {
        sj_log(SJ_LOG_INFO, "retention", "removes session %lld (%lld bytes)", (long long)session_id,
               (long long)bytes);
    }
    return !stopping;
}

/* Applies all rules. A rule that fails, for example because its set cannot be parsed, is tried
 * again next time. It does not prevent the others. */
static void apply_all(sj_retainer *retainer)
{
    sj_error error = {0};
    if (sj_removal_resume(retainer->database, &error) != SJ_OK) {
        sj_log(SJ_LOG_ERROR, "retention", "%s", error.text);
    }
    for (size_t i = 0; i < retainer->rule_count; ++i) {
        int64_t removed;
        error = (sj_error){0};
        if (sj_retention_apply(retainer->database, &retainer->rules[i], may_continue, retainer,
                               &removed, &error) != SJ_OK) {
            sj_log(SJ_LOG_ERROR, "retention", "%s", error.text);
        }
    }
}

static void *run_retainer(void *held)
{
    sj_retainer *retainer = held;
    pthread_mutex_lock(&retainer->lock);
    while (!retainer->stopping) {
        struct timespec deadline;
        pthread_mutex_unlock(&retainer->lock);
        apply_all(retainer);
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += retainer->period_s;
        pthread_mutex_lock(&retainer->lock);
        while (!retainer->stopping &&
               pthread_cond_timedwait(&retainer->stop, &retainer->lock, &deadline) == 0) {
        }
    }
    pthread_mutex_unlock(&retainer->lock);
    return NULL;
}

static void free_retainer(sj_retainer *retainer)
{
    sqlite3_close(retainer->database);
    pthread_mutex_destroy(&retainer->lock);
    pthread_cond_destroy(&retainer->stop);
    free(retainer->rules);
    free(retainer);
}

sj_status sj_retainer_start(const char *path, const sj_retention_rule *rules, size_t rule_count,
                            unsigned period_s, sj_retainer **retainer, sj_error *error)
{
    sj_retainer *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for retention");
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->stop, NULL);
    made->period_s = period_s;
    made->rule_count = rule_count;
    made->rules = calloc(rule_count != 0 ? rule_count : 1, sizeof(*rules));
    sj_status status = SJ_OK;
    if (made->rules == NULL) {
        status = sj_fail(error, SJ_ENOMEM, "no memory for retention");
    } else {
        memcpy(made->rules, rules, rule_count * sizeof(*rules));
        status = sj_database_open(path, SJ_DATABASE_WRITE, &made->database, error);
    }
    if (status == SJ_OK) {
        status = sj_query_register(made->database, NULL, error);
    }
    if (status == SJ_OK && pthread_create(&made->thread, NULL, run_retainer, made) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot start the retention thread");
    }
    if (status != SJ_OK) {
        free_retainer(made);
        return status;
    }
    *retainer = made;
    return SJ_OK;
}

void sj_retainer_stop(sj_retainer *retainer)
{
    if (retainer == NULL) {
        return;
    }
    pthread_mutex_lock(&retainer->lock);
    retainer->stopping = true;
    pthread_cond_signal(&retainer->stop);
    pthread_mutex_unlock(&retainer->lock);
    pthread_join(retainer->thread, NULL);
    free_retainer(retainer);
}
