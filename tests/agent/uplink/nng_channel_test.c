/* Tests that NNG's channel can be closed while NNG's threads use it, and also if NNG never finishes
 * the close. */
#include "agent/uplink/nng_channel.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum { SLOTS = 8, MEANWHILE_MS = 300 };

static sem_t entered;
static sem_t may_continue;
static sem_t closing;
static atomic_int inside;
static atomic_bool holds_back;
static atomic_bool closed_meanwhile;
static atomic_bool holds_close;
static sem_t may_close;
static sem_t closed;

/* The linker redirects the channel's calls here. A thread of NNG stays in the call that uses a
 * context until the test has seen how a close behaves. */
void __real_nng_ctx_recv(nng_ctx context, nng_aio *aio);
void __wrap_nng_ctx_recv(nng_ctx context, nng_aio *aio);
void __wrap_nng_ctx_recv(nng_ctx context, nng_aio *aio)
{
    atomic_fetch_add(&inside, 1);
    if (atomic_exchange(&holds_back, false)) {
        sem_post(&entered);
        sem_wait(&may_continue);
    }
    __real_nng_ctx_recv(context, aio);
    atomic_fetch_sub(&inside, 1);
}

int __real_nng_close(nng_socket socket);
int __wrap_nng_close(nng_socket socket);
int __wrap_nng_close(nng_socket socket)
{
    if (atomic_load(&inside) != 0) {
        atomic_store(&closed_meanwhile, true);
    }
    sem_post(&closing);
    const bool is_held = atomic_exchange(&holds_close, false);
    if (is_held) {
        sem_wait(&may_close);
    }
    const int result = __real_nng_close(socket);
    if (is_held) {
        sem_post(&closed);
    }
    return result;
}

static void *close_channel(void *argument)
{
    sj_channel_nng.close(argument);
    return NULL;
}

/* NNG would end the process ("freed mutex") if a socket were closed while a call uses its
 * context. */
static void a_socket_is_closed_when_no_call_uses_its_contexts(void **state)
{
    static const uint8_t question[] = "question";
    const sj_channel_options options = {
        .url = "inproc://nng_channel_test", .slots = SLOTS, .resend_ms = 60000};
    nng_socket collector;
    sj_channel *channel;
    sj_error error = {0};
    pthread_t closer;
    struct timespec until;
    (void)state;
    assert_int_equal(nng_rep0_open_raw(&collector), 0);
    assert_int_equal(nng_listen(collector, options.url, NULL, 0), 0);
    assert_int_equal(sj_channel_nng.open(&options, &channel, &error), SJ_OK);
    for (uint32_t i = 0; i < SLOTS; ++i) {
        const sj_slice bytes = {.data = question, .size = sizeof(question)};
        assert_int_equal(sj_channel_nng.ask(channel, i, bytes), SJ_OK);
    }
    assert_int_equal(sem_wait(&entered), 0);
    assert_int_equal(pthread_create(&closer, NULL, close_channel, channel), 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MEANWHILE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)sem_timedwait(&closing, &until);
    sem_post(&may_continue);
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_false(atomic_load(&closed_meanwhile));
    __real_nng_close(collector);
}

/* NNG's close never returns if a message arrives during it. */
static void a_channel_is_closed_though_nng_does_not_end_its_socket(void **state)
{
    static sj_channel *left; /* This channel is never freed. */
    const sj_channel_options options = {
        .url = "inproc://nng_channel_test", .slots = SLOTS, .resend_ms = 60000};
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_channel_nng.open(&options, &left, &error), SJ_OK);
    atomic_store(&holds_close, true);
    sj_channel_nng.close(left);
    assert_false(atomic_load(&holds_close));
    sem_post(&may_close);
    assert_int_equal(sem_wait(&closed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_is_closed_when_no_call_uses_its_contexts),
        cmocka_unit_test(a_channel_is_closed_though_nng_does_not_end_its_socket),
    };
    sem_init(&entered, 0, 0);
    sem_init(&may_continue, 0, 0);
    sem_init(&closing, 0, 0);
    sem_init(&may_close, 0, 0);
    sem_init(&closed, 0, 0);
    atomic_store(&holds_back, true);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nng_fini();
    return failed;
}
