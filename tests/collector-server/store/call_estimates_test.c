/* Tests the estimates for calls without a clock: counts, and the standard error of their sum. */
#include "collector-server/store/session_state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SHORT = 7, OTHER = 40000, FIRST = 1, UNTIMED = 2, ELSE = 3, EVENTS = 10 };

static const uint32_t functions[] = {SHORT, SHORT, OTHER};
static const uint8_t untimed[] = {0, 0, 1, 0};

/* Two timed calls of 10 and 14 ticks, two untimed calls of 12 each, and one call of another
 * function. */
static const uint16_t symbols[EVENTS] = {FIRST, 0, FIRST, 0, UNTIMED, 0, UNTIMED, 0, ELSE, 0};
static const uint64_t ticks[EVENTS] = {0, 10, 20, 34, 40, 52, 60, 72, 80, 180};

static sj_block make_block(void)
{
    return (sj_block){.header.event_count = EVENTS,
                      .functions = functions,
                      .function_count = 3,
                      .symbols16 = symbols,
                      .ticks = ticks,
                      .untimed = untimed};
}

static void test_timed_calls_of_counted_functions_give_the_error(void **state)
{
    (void)state;
    sj_call_estimates *estimates = NULL;
    const sj_block block = make_block();
    size_t place = 0;
    uint32_t function = 0;
    assert_int_equal(sj_call_estimates_add(&estimates, &block), SJ_OK);
    const sj_call_estimate *found = sj_call_estimates_next(estimates, &place, &function);
    assert_non_null(found);
    assert_int_equal(function, SHORT);
    assert_int_equal(found->untimed, 2);
    assert_int_equal(found->timed, 2);
    /* n * s / sqrt(m): s of 10 and 14 is sqrt(8). */
    assert_true(fabs(sj_call_estimate_error(found) - 2 * sqrt(8.0 / 2)) < 1e-9);
    assert_null(sj_call_estimates_next(estimates, &place, &function));
    sj_call_estimates_clean(estimates);
    place = 0;
    assert_null(sj_call_estimates_next(estimates, &place, &function));
    sj_call_estimates_free(estimates);
}

/* The second timed call contains a wait, so its duration is not used. One call alone has no
 * spread. */
static void test_calls_with_a_wait_are_not_used(void **state)
{
    (void)state;
    static const sj_gap gaps[] = {{.before_event = 3, .reason = SJ_GAP_WAITED}};
    sj_call_estimates *estimates = NULL;
    sj_block block = make_block();
    block.gaps = gaps;
    block.gap_count = 1;
    size_t place = 0;
    uint32_t function = 0;
    assert_int_equal(sj_call_estimates_add(&estimates, &block), SJ_OK);
    const sj_call_estimate *found = sj_call_estimates_next(estimates, &place, &function);
    assert_non_null(found);
    assert_int_equal(found->untimed, 2);
    assert_int_equal(found->timed, 1);
    assert_true(found->timed_ticks == 10);
    sj_call_estimates_free(estimates);
}

static void test_blocks_without_counted_calls_have_no_estimate(void **state)
{
    (void)state;
    sj_call_estimates *estimates = NULL;
    sj_block block = make_block();
    block.untimed = NULL;
    assert_int_equal(sj_call_estimates_add(&estimates, &block), SJ_OK);
    assert_null(estimates);
}

static void test_without_samples_the_error_is_the_sum(void **state)
{
    (void)state;
    const sj_call_estimate lone = {.untimed = 3, .timed = 1, .untimed_ticks = 36};
    assert_true(sj_call_estimate_error(&lone) == 36);
}

/* Calls that end in the next block count there. Functions beyond the limit are never counted. */
static void test_open_calls_and_high_function_numbers_are_counted_once(void **state)
{
    (void)state;
    static const uint32_t high[] = {1 << 16};
    static const uint8_t first[] = {0, 1};
    static const uint16_t pair[] = {0, 1, 0};
    static const uint64_t at[] = {50, 60, 70};
    static const sj_stack_frame frame = {
        .function = SHORT, .start_ticks = 5, .flags = SJ_CALL_UNTIMED};
    const sj_block block = {.header.event_count = 3,
                            .frames = &frame,
                            .frame_count = 1,
                            .functions = high,
                            .function_count = 1,
                            .symbols16 = pair,
                            .ticks = at,
                            .untimed = first};
    sj_call_estimates *estimates = NULL;
    size_t place = 0;
    uint32_t function = 0;
    assert_int_equal(sj_call_estimates_add(&estimates, &block), SJ_OK);
    const sj_call_estimate *found = sj_call_estimates_next(estimates, &place, &function);
    assert_non_null(found);
    assert_int_equal(function, SHORT);
    assert_int_equal(found->untimed, 1);
    assert_true(found->untimed_ticks == 45);
    assert_null(sj_call_estimates_next(estimates, &place, &function));
    sj_call_estimates_free(estimates);
}

/* A few bytes from a sender allocate memory for as many functions as can be counted. */
static void test_memory_of_estimates_counts_for_the_session(void **state)
{
    (void)state;
    static const uint32_t last[] = {(1 << 16) - 1};
    static const uint8_t first[] = {0, 1};
    static const uint16_t pair[] = {1, 0};
    static const uint64_t at[] = {50, 60};
    const sj_block block = {.header.event_count = 2,
                            .functions = last,
                            .function_count = 1,
                            .symbols16 = pair,
                            .ticks = at,
                            .untimed = first};
    sj_session_state session = {0};
    const size_t before = sj_session_state_bytes(&session);
    assert_int_equal(sj_call_estimates_add(&session.estimates, &block), SJ_OK);
    assert_true(sj_session_state_bytes(&session) >= before + (1 << 16) * sizeof(sj_call_estimate));
    sj_call_estimates_free(session.estimates);
    assert_int_equal(sj_call_estimates_bytes(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timed_calls_of_counted_functions_give_the_error),
        cmocka_unit_test(test_calls_with_a_wait_are_not_used),
        cmocka_unit_test(test_blocks_without_counted_calls_have_no_estimate),
        cmocka_unit_test(test_without_samples_the_error_is_the_sum),
        cmocka_unit_test(test_open_calls_and_high_function_numbers_are_counted_once),
        cmocka_unit_test(test_memory_of_estimates_counts_for_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
