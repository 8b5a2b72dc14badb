/* Answers to requests over inproc:// arrive, whatever NNG's threads do meanwhile. A probe ends even
 * if NNG does not end its socket, and leaves only one thread behind. */
#include "collector-server/ingest/listener.h"
#include "collector-server/ingest/probe.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

enum { QUESTIONS = 8, PINGS = 3, PATIENCE_MS = 60000, TASKS_MAX = 256 };

static const char url[] = "inproc://listener-test";

typedef struct fixture {
    sj_listener *listener;
    nng_socket client;
    nng_ctx contexts[QUESTIONS];
    nng_aio *asking[QUESTIONS];
    nng_aio *blocking[TASKS_MAX];
    size_t tasks;          /* threads on which NNG runs callbacks */
    pthread_mutex_t mutex; /* guards all members below */
    pthread_cond_t changed;
    sj_inbound taken[QUESTIONS];
    size_t taken_count;
    size_t blocked_count;
    bool may_continue;
} fixture;

static sj_edge_verdict handle(void *context, sj_inbound *inbound)
{
    fixture *f = context;
    pthread_mutex_lock(&f->mutex);
    f->taken[f->taken_count++] = *inbound;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    return SJ_EDGE_ACCEPTED;
}

static void wait_for_count(fixture *f, const size_t *count, size_t wanted)
{
    pthread_mutex_lock(&f->mutex);
    while (*count < wanted) {
        pthread_cond_wait(&f->changed, &f->mutex);
    }
    pthread_mutex_unlock(&f->mutex);
}

/* Runs on a thread of NNG. */
static void block(void *context)
{
    fixture *f = context;
    pthread_mutex_lock(&f->mutex);
    f->blocked_count++;
    pthread_cond_broadcast(&f->changed);
    while (!f->may_continue) {
        pthread_cond_wait(&f->changed, &f->mutex);
    }
    pthread_mutex_unlock(&f->mutex);
}

static size_t count_task_threads(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[sizeof("/proc/self/task//comm") + sizeof(entry->d_name)];
        char name[16] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        count += file != NULL && fgets(name, sizeof(name), file) != NULL &&
                 strncmp(name, "nng:task", 8) == 0;
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(folder);
    return count;
}

static void block_tasks(fixture *f)
{
    f->tasks = count_task_threads();
    assert_in_range(f->tasks, 1, TASKS_MAX);
    for (size_t i = 0; i < f->tasks; i++) {
        assert_int_equal(nng_aio_alloc(&f->blocking[i], block, f), 0);
        nng_sleep_aio(0, f->blocking[i]);
    }
    wait_for_count(f, &f->blocked_count, f->tasks);
}

static void unblock_tasks(fixture *f)
{
    pthread_mutex_lock(&f->mutex);
    f->may_continue = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    for (size_t i = 0; i < f->tasks; i++) {
        nng_aio_wait(f->blocking[i]);
        nng_aio_free(f->blocking[i]);
    }
}

/* Sends a request once and never again, so that a lost answer shows. */
static void ask(fixture *f, uint32_t number)
{
    nng_msg *message = NULL;
    assert_int_equal(nng_ctx_open(&f->contexts[number], f->client), 0);
    assert_int_equal(
        nng_ctx_set_ms(f->contexts[number], NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE), 0);
    assert_int_equal(nng_aio_alloc(&f->asking[number], NULL, NULL), 0);
    nng_aio_set_timeout(f->asking[number], PATIENCE_MS);
    assert_int_equal(nng_msg_alloc(&message, 0), 0);
    assert_int_equal(nng_msg_append_u32(message, number), 0);
    nng_aio_set_msg(f->asking[number], message);
    nng_ctx_send(f->contexts[number], f->asking[number]);
    nng_aio_wait(f->asking[number]);
    assert_int_equal(nng_aio_result(f->asking[number]), 0);
    nng_ctx_recv(f->contexts[number], f->asking[number]);
}

static void check_reply(fixture *f, uint32_t number)
{
    uint32_t reply = 0;
    nng_aio_wait(f->asking[number]);
    assert_int_equal(nng_aio_result(f->asking[number]), 0);
    nng_msg *message = nng_aio_get_msg(f->asking[number]);
    assert_int_equal(nng_msg_trim_u32(message, &reply), 0);
    assert_int_equal(reply, number);
    nng_msg_free(message);
    nng_aio_free(f->asking[number]);
    nng_ctx_close(f->contexts[number]);
}

static void replies_arrive_although_no_nng_thread_runs(void **state)
{
    static fixture f = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const char *urls[] = {url};
    const sj_listener_options options = {
        .urls = urls, .url_count = 1, .handle = handle, .context = &f};
    (void)state;
    assert_int_equal(sj_listener_start(&options, &f.listener, NULL), SJ_OK);
    assert_int_equal(nng_req0_open(&f.client), 0);
    assert_int_equal(nng_dial(f.client, url, NULL, 0), 0);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        ask(&f, i);
    }
    wait_for_count(&f, &f.taken_count, QUESTIONS);
    block_tasks(&f);
    for (size_t i = 0; i < QUESTIONS; i++) {
        uint8_t reply[sizeof(uint32_t)];
        memcpy(reply, nng_msg_body(f.taken[i].message), sizeof(reply));
        sj_listener_reply(f.listener, &f.taken[i], (sj_slice){.data = reply, .size = sizeof(reply)},
                          true);
        sj_listener_free_message(&f.taken[i]);
    }
    unblock_tasks(&f);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        check_reply(&f, i);
    }
    nng_close(f.client);
    sj_listener_stop(f.listener);
}

static atomic_bool holds_close;
static atomic_int closes;
static sem_t may_close;
static sem_t closed;

/* The linker redirects calls of nng_close to __wrap_nng_close; __real_nng_close is NNG's own
 * function. The wrapper waits as long as the test wants, because NNG 1.5.2 may never return from
 * nng_close (socket_close.c). */
int __real_nng_close(nng_socket socket);
int __wrap_nng_close(nng_socket socket);
int __wrap_nng_close(nng_socket socket)
{
    const bool is_held = atomic_exchange(&holds_close, false);
    atomic_fetch_add(&closes, 1);
    if (is_held) {
        sem_wait(&may_close);
    }
    const int result = __real_nng_close(socket);
    if (is_held) {
        sem_post(&closed);
    }
    return result;
}

/* Replies to PINGS times as a collector does. */
static void *reply_to_pings(void *argument)
{
    nng_socket *collector = argument;
    for (int i = 0; i < PINGS; i++) {
        nng_msg *message = NULL;
        if (nng_recvmsg(*collector, &message, 0) == 0 && nng_sendmsg(*collector, message, 0) != 0) {
            nng_msg_free(message);
        }
    }
    return NULL;
}

static void a_probe_ends_though_nng_does_not_end_its_socket(void **state)
{
    static const char probed[] = "inproc://listener-test-probe";
    nng_socket collector;
    pthread_t answering;
    (void)state;
    sem_init(&may_close, 0, 0);
    sem_init(&closed, 0, 0);
    assert_int_equal(nng_rep0_open(&collector), 0);
    assert_int_equal(nng_listen(collector, probed, NULL, 0), 0);
    assert_int_equal(pthread_create(&answering, NULL, reply_to_pings, &collector), 0);
    atomic_store(&holds_close, true);
    atomic_store(&closes, 0);
    sj_probe *probe = sj_probe_new(probed, NULL);
    assert_non_null(probe);
    for (int i = 0; i < PINGS; i++) {
        assert_true(sj_probe_is_answered(probe, PATIENCE_MS));
        assert_int_equal(atomic_load(&closes), 1);
    }
    sem_post(&may_close);
    assert_int_equal(sem_wait(&closed), 0);
    assert_int_equal(pthread_join(answering, NULL), 0);
    sj_probe_free(probe);
    nng_close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_arrive_although_no_nng_thread_runs),
        cmocka_unit_test(a_probe_ends_though_nng_does_not_end_its_socket),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nng_fini(); /* frees NNG's memory, so that a leak checker reports only real leaks */
    return failed;
}
