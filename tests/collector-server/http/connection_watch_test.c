/* Tests which connections are ended: those over their time and, when there are too many, those that
 * make way first. Pairs of sockets replace libmicrohttpd. */
#include "collector-server/http/connection_watch.h"
#include "tests/support/check.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = SJ_HTTP_CONNECTIONS_MAX + 4, NS_A_S = 1000000000 };

/* Names of the connections, the servers' ends of their sockets, and the ends of their peers. */
static char names[MOST];
static union MHD_ConnectionInfo infos[MOST];
static int peers[MOST];
static union MHD_ConnectionInfo addresses[MOST];
static struct sockaddr_in6 from[MOST]; /* zeroed: no address */
static sj_connection_watch *watch;

static struct MHD_Connection *name_of(size_t number)
{
    return (struct MHD_Connection *)(void *)&names[number];
}

const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...)
{
    const size_t number = (size_t)((char *)(void *)connection - names);
    if (type == MHD_CONNECTION_INFO_CLIENT_ADDRESS) {
        addresses[number].client_addr = (struct sockaddr *)&from[number];
        return &addresses[number];
    }
    assert_int_equal(type, MHD_CONNECTION_INFO_CONNECTION_FD);
    return &infos[number];
}

static void begin(size_t number)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    infos[number].connect_fd = ends[0];
    peers[number] = ends[1];
    sj_connection_watch_notify(watch, name_of(number), NULL, MHD_CONNECTION_NOTIFY_STARTED);
}

static void end(size_t number)
{
    sj_connection_watch_notify(watch, name_of(number), NULL, MHD_CONNECTION_NOTIFY_CLOSED);
    close(infos[number].connect_fd);
    close(peers[number]);
}

/* True if the server has shut the connection down. */
static bool is_ended(size_t number)
{
    char byte;
    const ssize_t got = recv(peers[number], &byte, 1, MSG_DONTWAIT);
    assert_true(got == 0 || (got < 0 && errno == EAGAIN));
    return got == 0;
}

static size_t count_ended(size_t count)
{
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        ended += is_ended(i);
    }
    return ended;
}

static void sweep_in(unsigned seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sj_connection_watch_sweep(watch,
                              ((uint64_t)now.tv_sec + seconds) * NS_A_S + (uint64_t)now.tv_nsec);
}

static int set_up(void **state)
{
    (void)state;
    return sj_connection_watch_new(&watch) == SJ_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sj_connection_watch_free(watch);
    return 0;
}

static void connections_over_their_time_are_ended(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        begin(i);
    }
    sj_connection_watch_answering(watch, name_of(1), 0);
    sj_connection_watch_answering(watch, name_of(2), 1);
    sj_connection_watch_answering(watch, name_of(3), 0);
    sj_connection_watch_answered(watch, name_of(3)); /* the peer may send another request */
    sweep_in(SJ_HTTP_REQUEST_SECONDS / 2);
    assert_int_equal(count_ended(4), 0);
    sweep_in(SJ_HTTP_REQUEST_SECONDS + 1);
    assert_true(is_ended(0) && !is_ended(1) && !is_ended(2) && is_ended(3));
    sweep_in(SJ_HTTP_RESPONSE_SECONDS + 1);
    assert_true(is_ended(1) && !is_ended(2));
    sweep_in(1000 * SJ_HTTP_RESPONSE_SECONDS);
    assert_false(is_ended(2)); /* a stream has no end */
    for (size_t i = 0; i < 4; i++) {
        end(i);
    }
}

/* Requests make way before responses, and responses before streams. In each group the one in its
 * state for longest goes first. */
static void the_oldest_request_is_ended_when_connections_are_full(void **state)
{
    (void)state;
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        begin(i);
        if (i != 5 && i != 9) {
            sj_connection_watch_answering(watch, name_of(i), i == 0 || i == 2);
        }
    }
    assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX), 0);
    static const size_t order[] = {5, 9, 1};
    for (size_t i = 0; i < 3; i++) {
        begin(SJ_HTTP_CONNECTIONS_MAX + i);
        sj_connection_watch_answering(watch, name_of(SJ_HTTP_CONNECTIONS_MAX + i), 0);
        assert_true(is_ended(order[i]));
        assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX + i), i + 1);
    }
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX + 3; i++) {
        end(i);
    }
}

/* Connections are counted once, when they are shut down or when they close by themselves. */
static void ended_connections_free_their_slots_once(void **state)
{
    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
            begin(i);
        }
        assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX), 0);
        if (round != 1) {
            sweep_in(SJ_HTTP_REQUEST_SECONDS + 1);
            sweep_in(SJ_HTTP_REQUEST_SECONDS + 2); /* one sweep is enough */
            assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX), SJ_HTTP_CONNECTIONS_MAX);
        }
        for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
            end(i);
        }
    }
}

/* Begins a connection from 2001:db8:0:NET::HOST. */
static void begin_from(size_t number, uint8_t net, uint8_t host)
{
    from[number] = (struct sockaddr_in6){
        .sin6_family = AF_INET6,
        .sin6_addr = {.s6_addr = {0x20, 0x01, 0x0d, 0xb8, [7] = net, [15] = host}}};
    begin(number);
}

/* All addresses of a /64 count as one, because a host has a whole /64. */
static void connections_of_the_busiest_address_are_ended_first(void **state)
{
    enum { HONEST = SJ_HTTP_CONNECTIONS_OF_ADDRESS };
    (void)state;
    for (size_t i = 0; i < HONEST; i++) {
        begin_from(i, 1, 1); /* these were there first */
    }
    for (size_t i = HONEST; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        begin_from(i, 2, (uint8_t)i);
    }
    for (size_t i = 0; i < 4; i++) {
        begin_from(SJ_HTTP_CONNECTIONS_MAX + i, 2, (uint8_t)i);
        assert_true(is_ended(HONEST + i));
    }
    assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX + 4), 4);
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX + 4; i++) {
        end(i);
        from[i] = (struct sockaddr_in6){0};
    }
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        /* no network has too many: the oldest connection goes */
        begin_from(i, (uint8_t)(i % 8), 1);
    }
    begin_from(SJ_HTTP_CONNECTIONS_MAX, 9, 1);
    assert_true(is_ended(0));
    for (size_t i = 0; i <= SJ_HTTP_CONNECTIONS_MAX; i++) {
        end(i);
        from[i] = (struct sockaddr_in6){0};
    }
}

static void slow_readers_of_the_busiest_address_are_ended_first(void **state)
{
    (void)state;
    begin_from(0, 1, 1);
    for (size_t i = 1; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        begin_from(i, 2, 1);
        sj_connection_watch_answering(watch, name_of(i), 0);
    }
    begin_from(SJ_HTTP_CONNECTIONS_MAX, 2, 1);
    assert_false(is_ended(0));
    assert_int_equal(count_ended(SJ_HTTP_CONNECTIONS_MAX + 1), 1);
    for (size_t i = 0; i <= SJ_HTTP_CONNECTIONS_MAX; i++) {
        end(i);
        from[i] = (struct sockaddr_in6){0};
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connections_over_their_time_are_ended),
        TEST(the_oldest_request_is_ended_when_connections_are_full),
        TEST(connections_of_the_busiest_address_are_ended_first),
        TEST(slow_readers_of_the_busiest_address_are_ended_first),
        TEST(ended_connections_free_their_slots_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
