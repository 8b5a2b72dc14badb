#include "collector-server/http/answer_pool.h"

#include "collector-server/http/audited.h"
#include "collector-server/http/cluster_answers.h"
#include "collector-server/http/context.h"
#include "collector-server/http/reply.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A client may close its sending side and wait, so only an answer that takes longer than
 * UNWATCHED_MS is cancelled. */
enum { REQUEST_DEADLINE_MS = 5000, UNWATCHED_MS = 200, BETWEEN_LOOKS_MS = 20 };

struct sj_answer_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t threads[SJ_ANSWER_THREADS];
    size_t thread_count;
    sj_answer *first; /* waiting answers, in order of arrival */
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

static bool has_left(int socket)
{
    struct pollfd client = {.fd = socket, .events = POLLRDHUP};
    return poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool sj_answer_goes_on(void *context)
{
    sj_request *request = context;
    const uint64_t now = now_ms();
    if (atomic_load_explicit(&request->context->answers->stopping, memory_order_relaxed)) {
        return false;
    }
    if (!request->is_left && now >= request->next_look_ms) {
        request->next_look_ms = now + BETWEEN_LOOKS_MS;
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
    SJ_TRY(is_of_session ? sj_cluster_answers_prepare(request, true, error) : SJ_OK);
    if (route->has_own_database) {
        return route->run(request, body, error);
    }
    SJ_TRY(sj_database_pool_take(databases, REQUEST_DEADLINE_MS, sj_answer_goes_on, request,
                                 &request->database, error));
    const sj_status status = route->run(request, body, error);
    sj_database_pool_give(databases, request->database);
    return status;
}

static sj_status run_post(sj_answer *answer, json_t **body, sj_error *error)
{
    json_t *input = NULL;
    sj_request *request = &answer->request;
    SJ_TRY(sj_post_parse(answer->posted, &input, error));
    char *text = answer->route->action != NULL ? json_dumps(input, JSON_COMPACT) : NULL;
    request->action = answer->route->action;
    request->object = text != NULL ? text : "";
    const sj_status status = answer->route->post(request, input, body, error);
    sj_audited_write(request, status, error);
    free(text);
    json_decref(input);
    return status;
}

/* Returns the text of an error response. On public routes without the token it says nothing,
 * because an error's text may name files and their contents. */
static const char *text_for(const sj_answer *answer, const sj_error *error)
{
    return answer->request.visitor.role == SJ_ROLE_NONE
               ? "the server is not well; its log has the reason, and so has this answer for who "
                 "shows the token"
               : error->text;
}

static void make_answer(sj_answer *answer)
{
    sj_error error = {.status = SJ_OK, .text = ""};
    json_t *body = NULL;
    const bool is_post = answer->posted != NULL;
    sj_request *request = &answer->request;
    request->next_look_ms = now_ms() + UNWATCHED_MS;
    const sj_status status =
        is_post ? run_post(answer, &body, &error) : run_get(answer->route, request, &body, &error);
    if (request->is_question) {
        sj_audited_write(request, status, &error);
    }
    answer->status = status != SJ_OK ? status_code_of(status)
                     : is_post       ? MHD_HTTP_ACCEPTED
                                     : MHD_HTTP_OK;
    answer->response = status == SJ_OK && request->file != NULL ? request->file
                       : status == SJ_OK
                           ? sj_reply_make_json(request->connection, answer->status, body)
                           : sj_reply_make_error(request->connection, answer->status,
                                                 text_for(answer, &error), NULL);
    json_decref(body);
    if (request->is_left) {
        atomic_fetch_add(&request->context->answers->cancelled, 1);
    }
}

/* Returns the first answer that may be made now. The caller holds the lock. */
static sj_answer *take_work(sj_answer_pool *pool)
{
    sj_answer **link = &pool->first;
    while (*link != NULL && (*link)->route->is_slow && pool->slow_count >= SJ_ANSWER_SLOW_AT_ONCE) {
        link = &(*link)->next;
    }
    sj_answer *taken = *link;
    if (taken != NULL) {
        *link = taken->next;
        pool->slow_count += taken->route->is_slow;
    }
    return taken;
}

static void *run_thread(void *context)
{
    sj_answer_pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        sj_answer *answer = take_work(pool);
        if (answer == NULL && pool->stopping) {
            break;
        }
        if (answer == NULL) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        const bool is_slow = answer->route->is_slow;
        make_answer(answer);
        MHD_resume_connection(answer->request.connection); /* this may free `answer` */
        pthread_mutex_lock(&pool->lock);
        pool->slow_count -= is_slow;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

sj_status sj_answer_pool_start(sj_answer_pool **pool, sj_error *error)
{
    sj_answer_pool *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    for (size_t i = 0; i < SJ_ANSWER_THREADS; i++) {
        const int code = pthread_create(&made->threads[i], NULL, run_thread, made);
        if (code != 0) {
            sj_answer_pool_stop(made);
            sj_answer_pool_free(made);
            return sj_fail(error, SJ_EIO, "cannot start a thread: %s", strerror(code));
        }
        made->thread_count++;
    }
    *pool = made;
    return SJ_OK;
}

bool sj_answer_pool_ask(sj_answer_pool *pool, sj_answer *answer)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(answer->request.connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    answer->request.socket = info != NULL ? info->connect_fd : -1;
    answer->next = NULL;
    pthread_mutex_lock(&pool->lock);
    const bool goes_on = !pool->stopping;
    if (goes_on) {
        MHD_suspend_connection(answer->request.connection);
        sj_answer **end = &pool->first;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = answer;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return goes_on;
}

uint64_t sj_answer_pool_cancelled(const sj_answer_pool *pool)
{
    return atomic_load(&pool->cancelled);
}

void sj_answer_pool_stop(sj_answer_pool *pool)
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

void sj_answer_pool_free(sj_answer_pool *pool)
{
    if (pool != NULL) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
    }
}
