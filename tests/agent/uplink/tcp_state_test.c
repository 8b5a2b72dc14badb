/* Tests the kernel's state of a connection that its peer has ended. */
#include "agent/uplink/tcp_state.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct pair {
    int near, far;
    struct sockaddr_storage local; /* Address of `near`. */
} pair;

static pair connect_pair(sa_family_t family)
{
    pair made = {.near = socket(family, SOCK_STREAM, 0)};
    struct sockaddr_storage address = {.ss_family = family};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    socklen_t size = sizeof(address);
    const int listener = socket(family, SOCK_STREAM, 0);
    if (family == AF_INET) {
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    }
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(made.near, (struct sockaddr *)&address, size), 0);
    made.far = accept(listener, NULL, NULL);
    assert_true(made.far >= 0);
    close(listener);
    size = sizeof(made.local);
    assert_int_equal(getsockname(made.near, (struct sockaddr *)&made.local, &size), 0);
    return made;
}

static void expect_end_is_seen(sa_family_t family)
{
    char byte;
    pair used = connect_pair(family);
    const struct sockaddr *local = (const struct sockaddr *)&used.local;
    assert_false(sj_tcp_is_over(local));
    close(used.far);
    assert_int_equal(read(used.near, &byte, 1), 0); /* The end has arrived. */
    assert_true(sj_tcp_is_over(local));
    close(used.near);
    assert_false(sj_tcp_is_over(local));
}

static void a_connection_that_its_peer_ended_is_over(void **state)
{
    (void)state;
    expect_end_is_seen(AF_INET);
}

static void an_ipv6_connection_that_its_peer_ended_is_over(void **state)
{
    (void)state;
    expect_end_is_seen(AF_INET6);
}

static void a_connection_that_was_reset_is_over(void **state)
{
    char byte;
    (void)state;
    pair used = connect_pair(AF_INET);
    const struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(used.far, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(used.far);
    assert_int_equal(read(used.near, &byte, 1), -1);
    assert_true(sj_tcp_is_over((const struct sockaddr *)&used.local));
    close(used.near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_that_its_peer_ended_is_over),
        cmocka_unit_test(an_ipv6_connection_that_its_peer_ended_is_over),
        cmocka_unit_test(a_connection_that_was_reset_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
