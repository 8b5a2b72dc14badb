/* Tests that a frame's type is changed only if nothing of the frame is lost, and that a client
 * stops although NNG does not close its socket. */
#include "agent/daemon/collector_client.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <nng/nng.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_BYTES = 256, TIMEOUT_MS = 600000, PATIENCE_S = 120 };

static sem_t may_close, closed;

int __real_nng_close(nng_socket socket);
int __wrap_nng_close(nng_socket socket);

/* Waits, as in NNG 1.5.2 if a message arrives while its connection is being closed. */
int __wrap_nng_close(nng_socket socket)
{
    sem_wait(&may_close);
    const int result = __real_nng_close(socket);
    sem_post(&closed);
    return result;
}

static size_t write_frame(uint8_t *frame, const char *payload)
{
    static const uint8_t header[] = "header";
    size_t size = 0;
    assert_int_equal(
        sj_frame_write(SJ_FRAME_HELLO, (sj_slice){.data = header, .size = sizeof(header)},
                       (sj_slice){.data = (const uint8_t *)payload, .size = strlen(payload)}, frame,
                       FRAME_BYTES, &size),
        SJ_OK);
    return size;
}

static void a_frame_without_payload_changes_its_type(void **state)
{
    uint8_t frame[FRAME_BYTES];
    sj_frame_view view;
    const size_t size = write_frame(frame, "");
    (void)state;
    assert_int_equal(sj_server_client_retype(frame, size, SJ_FRAME_ENROL), SJ_OK);
    assert_int_equal(sj_frame_read((sj_slice){.data = frame, .size = size}, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_ENROL);
    assert_string_equal((const char *)view.header.data, "header");
}

static void a_frame_with_payload_is_refused_unchanged(void **state)
{
    uint8_t frame[FRAME_BYTES];
    sj_frame_view view;
    const size_t size = write_frame(frame, "payload");
    (void)state;
    assert_int_equal(sj_server_client_retype(frame, size, SJ_FRAME_ENROL), SJ_EINVAL);
    assert_int_equal(sj_frame_read((sj_slice){.data = frame, .size = size}, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_HELLO);
    assert_int_equal(view.payload.size, strlen("payload"));
}

typedef struct request {
    sj_server_client *client;
    sj_status status;
} request;

static void *ask(void *argument)
{
    request *asked = argument;
    uint8_t frame[FRAME_BYTES];
    const sj_slice bytes = {.data = frame, .size = write_frame(frame, "")};
    sj_server_reply reply;
    sj_error error;
    asked->status = sj_server_client_ask(asked->client, bytes, TIMEOUT_MS, &reply, &error);
    return NULL;
}

/* Returns a socket that listens at a free port, and writes the port's address into `url`. */
static int listen_at(char *url, size_t capacity)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(place);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&place, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&place, &size), 0);
    snprintf(url, capacity, "tcp://127.0.0.1:%d", ntohs(place.sin_port));
    return listener;
}

static void a_request_ends_although_nng_keeps_the_socket(void **state)
{
    char url[64];
    static request asked; /* NNG's threads may use the client to the end of the process. */
    pthread_t thread;
    struct timespec until;
    sj_error error;
    const int listener = listen_at(url, sizeof(url));
    (void)state;
    assert_int_equal(sj_server_client_open(url, NULL, &asked.client, &error), SJ_OK);
    assert_int_equal(pthread_create(&thread, NULL, ask, &asked), 0);
    const int peer = accept(listener, NULL, NULL);
    assert_true(peer >= 0);
    sj_server_client_stop(asked.client);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
    assert_int_equal(asked.status, SJ_ECLOSED);
    assert_true(sj_server_client_is_stuck(asked.client));
    sem_post(&may_close);
    assert_int_equal(sem_wait(&closed), 0);
    close(peer);
    close(listener);
}

int main(void)
{
    sem_init(&may_close, 0, 0);
    sem_init(&closed, 0, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_without_payload_changes_its_type),
        cmocka_unit_test(a_frame_with_payload_is_refused_unchanged),
        cmocka_unit_test(a_request_ends_although_nng_keeps_the_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
