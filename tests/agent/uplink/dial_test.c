/* Tests that a dialer without a working connection is replaced. The test has no listener and does
 * not wait for time to pass. */
#include "agent/uplink/dial.h"

#include <nng/protocol/reqrep0/req.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int set_up(void **state)
{
    static sj_dialing dialing;
    nng_socket socket;
    assert_int_equal(nng_req0_open(&socket), 0);
    assert_int_equal(sj_dialing_start(&dialing, socket, "inproc://nobody", NULL), 0);
    *state = &dialing;
    return 0;
}

static int tear_down(void **state)
{
    sj_dialing *dialing = *state;
    nng_close(dialing->socket);
    sj_dialing_deinit(dialing);
    return 0;
}

/* Polls the dialer. It must want to wait `wait_ms`, or up to three seconds longer. */
static void expect_wait(sj_dialing *dialing, const sj_dialing_state *state, int64_t wait_ms)
{
    const int64_t before = now_ms();
    const int64_t again = sj_dialing_poll(dialing, state) / 1000000;
    assert_true(again >= before + wait_ms - 1);
    assert_true(again <= now_ms() + wait_ms + 3000);
}

static void expect_replacement(sj_dialing *dialing, const sj_dialing_state *state, int64_t wait_ms)
{
    const int old = nng_dialer_id(dialing->dialer);
    dialing->again_ns = 1; /* In the past. */
    expect_wait(dialing, state, wait_ms);
    assert_int_not_equal(nng_dialer_id(dialing->dialer), old);
}

static void a_dialer_without_a_connection_is_replaced_ever_later(void **state)
{
    sj_dialing *dialing = *state;
    sj_dialing_state now = {.is_asking = true};
    expect_wait(dialing, &now, 3000);
    expect_replacement(dialing, &now, 6000);
    expect_replacement(dialing, &now, 12000);
    expect_replacement(dialing, &now, 24000);
    expect_replacement(dialing, &now, 48000);
    expect_replacement(dialing, &now, 48000);
    now.connected++; /* A connection was made and lost. */
    expect_wait(dialing, &now, 3000);
}

/* A collector that is too busy to reply gets a new connection each time. A connection alone does
 * not shorten the waits; a reply does. */
static void a_silent_connection_is_replaced_ever_later(void **state)
{
    static const int64_t waits_ms[] = {50000, 100000, 100000};
    sj_dialing *dialing = *state;
    sj_dialing_state now = {.connections = 1, .connected = 1, .is_asking = true};
    expect_wait(dialing, &now, 25000);
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); ++i) {
        expect_replacement(dialing, &now, waits_ms[i]);
        now.connections = 0;
        expect_wait(dialing, &now, 3000);
        now.connections = 1;
        now.connected++;
        expect_wait(dialing, &now, waits_ms[i]);
    }
    now.replies++;
    expect_wait(dialing, &now, 25000);
    now.is_asking = false;
    assert_true(sj_dialing_poll(dialing, &now) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dialer_without_a_connection_is_replaced_ever_later,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_silent_connection_is_replaced_ever_later, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
