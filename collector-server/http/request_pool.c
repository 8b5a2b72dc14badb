#include "collector-server/http/request_pool.h"

#include "collector-server/http/audited.h"
#include "collector-server/http/cluster_results.h"
#include "collector-server/http/context.h"
#include "collector-server/http/reply.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A client may close its sending side and wait, so only an answer that takes longer than
 * UNWATCHED_MS is cancelled. */
enum { REQUEST_DEADLINE_MS = 5000, UNWATCHED_MS = 200, BETWEEN_CHECKS_MS = 20 };

struct sj_request_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t threads[SJ_REQUEST_THREADS];
    size_t thread_count;
    sj_request_job *first; /* waiting answers, in order of arrival */
    unsigned slow_count;
    _Atomic bool stopping;
    _Atomic uint64_t cancelled;
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* True if the client has closed the connection or its sending side. */
static bool has_left(int socket)
{
    struct pollfd client = {.fd = socket, .events = POLLRDHUP};
    return poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool sj_request_is_wanted(void *context)
{
    sj_request *request = context;
    const uint64_t now = now_ms();
    if (atomic_load_explicit(&request->context->requests->stopping, memory_order_relaxed)) {
        return false;
    }
    if (!request->is_left && now >= request->next_check_ms) {
        request->next_check_ms = now + BETWEEN_CHECKS_MS;
        request->is_left = has_left(request->socket);
    }
    return !request->is_left;
}

static unsigned status_code_of(sj_status status)
{
    switch (status) {
    case SJ_OK:
        return MHD_HTTP_OK;
    case SJ_EINVAL:
    case SJ_EUNSUPPORTED:
    case SJ_ELIMIT:
        return MHD_HTTP_BAD_REQUEST;
    case SJ_EPERM:
        return MHD_HTTP_FORBIDDEN;
    case SJ_ENOTFOUND:
        return MHD_HTTP_NOT_FOUND;
    case SJ_ETIMEDOUT:
    case SJ_EAGAIN:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

static sj_status run_get(const sj_route *route, sj_request *request, json_t **body, sj_error *error)
{
    static const char of_sessions[] = "/api/v1/sessions/{id}";
    sj_database_pool *databases = request->context->databases;
    const bool is_of_session =
        strncmp(route->pattern, of_sessions, strlen(of_sessions)) == 0 && request->id != 0;
    SJ_TRY(is_of_session ? sj_cluster_results_prepare(request, true, error) : SJ_OK);
    if (route->has_own_database) {
        return route->run(request, body, error);
    }
    SJ_TRY(sj_database_pool_borrow(databases, REQUEST_DEADLINE_MS, sj_request_is_wanted, request,
                                   &request->database, error));
    const sj_status status = route->run(request, body, error);
    sj_database_pool_give(databases, request->database);
    return status;
}

static sj_status run_post(sj_request_job *job, json_t **body, sj_error *error)
{
    json_t *input = NULL;
    sj_request *request = &job->request;
    sj_status status = sj_post_parse(job->posted, &input, error);
    char *text =
        job->route->action != NULL && status == SJ_OK ? json_dumps(input, JSON_COMPACT) : NULL;
    request->action = job->route->action;
    request->object = text != NULL ? text : job->route->pattern;
    request->is_refused = status != SJ_OK;
    if (status == SJ_OK) {
        status = job->route->post(request, input, body, error);
    }
    sj_audited_write(request, status, error);
    free(text);
    json_decref(input);
    return status;
}

/* Makes the audit's row of a POST that the visitor's role forbids. */
static sj_status run_refused(sj_request_job *job, sj_error *error)
{
    const sj_status status = sj_fail(error, SJ_EPERM, "%s", job->refusal);
    job->request.action = job->route->action;
    job->request.object = job->route->pattern;
    job->request.is_refused = true;
    sj_audited_write(&job->request, status, error);
    return status;
}

/* Returns the text of an error response: a constant for visitors without a valid token (on
 * public routes), because an error's text may name files and their contents. */
static const char *text_for(const sj_request_job *job, const sj_error *error)
{
    return job->request.visitor.role == SJ_ROLE_NONE
               ? "the server is not well; its log has the reason, and so has this answer for who "
                 "shows the token"
               : error->text;
}

static void make_response(sj_request_job *job)
{
    sj_error error = {.status = SJ_OK, .text = ""};
    json_t *body = NULL;
    const bool is_post = job->posted != NULL;
    sj_request *request = &job->request;
    request->next_check_ms = now_ms() + UNWATCHED_MS;
    const sj_status status = job->refusal != NULL ? run_refused(job, &error)
                             : is_post            ? run_post(job, &body, &error)
                                                  : run_get(job->route, request, &body, &error);
    if (request->is_question) {
        sj_audited_write(request, status, &error);
    }
    job->status = status != SJ_OK ? status_code_of(status)
                  : is_post       ? MHD_HTTP_ACCEPTED
                                  : MHD_HTTP_OK;
    job->response = status == SJ_OK && request->file != NULL ? request->file
                    : status == SJ_OK ? sj_reply_make_json(request->connection, job->status, body)
                                      : sj_reply_make_error(request->connection, job->status,
                                                            text_for(job, &error), NULL);
    json_decref(body);
    if (request->is_left) {
        atomic_fetch_add(&request->context->requests->cancelled, 1);
    }
}

/* Removes and returns the first job that may run now, or NULL. The caller holds the lock. */
static sj_request_job *pop_request(sj_request_pool *pool)
{
    sj_request_job **link = &pool->first;
    while (*link != NULL && (*link)->route->is_slow &&
           pool->slow_count >= SJ_REQUESTS_SLOW_AT_ONCE) {
        link = &(*link)->next;
    }
    sj_request_job *taken = *link;
    if (taken != NULL) {
        *link = taken->next;
        pool->slow_count += taken->route->is_slow;
    }
    return taken;
}

/* Makes responses until the pool stops. */
static void *run_thread(void *context)
{
    sj_request_pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        sj_request_job *job = pop_request(pool);
        if (job == NULL && pool->stopping) {
            break;
        }
        if (job == NULL) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        const bool is_slow = job->route->is_slow;
        make_response(job);
        MHD_resume_connection(job->request.connection); /* this may free `job` */
        pthread_mutex_lock(&pool->lock);
        pool->slow_count -= is_slow;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

sj_status sj_request_pool_start(sj_request_pool **pool, sj_error *error)
{
    sj_request_pool *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    for (size_t i = 0; i < SJ_REQUEST_THREADS; i++) {
        const int code = pthread_create(&made->threads[i], NULL, run_thread, made);
        if (code != 0) {
            sj_request_pool_stop(made);
            sj_request_pool_free(made);
            return sj_fail(error, SJ_EIO, "cannot start a thread: %s", strerror(code));
        }
        made->thread_count++;
    }
    *pool = made;
    return SJ_OK;
}

bool sj_request_pool_add(sj_request_pool *pool, sj_request_job *job)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(job->request.connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    job->request.socket = info != NULL ? info->connect_fd : -1;
    job->next = NULL;
    pthread_mutex_lock(&pool->lock);
    const bool may_continue = !pool->stopping;
    if (may_continue) {
        MHD_suspend_connection(job->request.connection);
        sj_request_job **end = &pool->first;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = job;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return may_continue;
}

uint64_t sj_request_pool_cancelled(const sj_request_pool *pool)
{
    return atomic_load(&pool->cancelled);
}

void sj_request_pool_stop(sj_request_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pool->thread_count = 0;
}

void sj_request_pool_free(sj_request_pool *pool)
{
    if (pool != NULL) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
    }
}
