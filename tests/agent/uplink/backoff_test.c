/* Tests the pauses between attempts to connect. */
#include "agent/uplink/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

static void pauses_double_up_to_five_seconds(void **state)
{
    (void)state;
    sj_backoff backoff = {.random = 1};
    uint32_t ceiling_ms = SJ_BACKOFF_MIN_MS;
    for (int i = 0; i < 20; ++i) {
        const uint32_t pause_ms = sj_backoff_next_ms(&backoff);
        assert_in_range(pause_ms, ceiling_ms / 2, ceiling_ms);
        ceiling_ms = ceiling_ms * 2 > SJ_BACKOFF_MAX_MS ? SJ_BACKOFF_MAX_MS : ceiling_ms * 2;
    }
    sj_backoff_reset(&backoff);
    assert_in_range(sj_backoff_next_ms(&backoff), SJ_BACKOFF_MIN_MS / 2, SJ_BACKOFF_MIN_MS);
}

/* A thousand devices have lost their collector at the same moment and make their tenth attempt. */
static void a_fleet_spreads_over_the_pause(void **state)
{
    (void)state;
    enum { DEVICES = 1000, BINS = 10 };
    unsigned bins[BINS] = {0};
    for (unsigned device = 0; device < DEVICES; ++device) {
        sj_backoff backoff = {.random = device};
        uint32_t pause_ms = 0;
        for (int i = 0; i < 10; ++i) {
            pause_ms = sj_backoff_next_ms(&backoff);
        }
        const uint32_t half_ms = SJ_BACKOFF_MAX_MS / 2;
        assert_in_range(pause_ms, half_ms, SJ_BACKOFF_MAX_MS);
        bins[(pause_ms - half_ms) * BINS / (half_ms + 1)]++;
    }
    for (unsigned i = 0; i < BINS; ++i) {
        assert_in_range(bins[i], DEVICES / BINS / 2, DEVICES / BINS * 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_five_seconds),
        cmocka_unit_test(a_fleet_spreads_over_the_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
