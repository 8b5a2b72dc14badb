/* Computes offsets between clocks from simulated exchanges whose true offset is known. */
#include "agent/uplink/clock_offset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const int64_t collector_offset_ns = INT64_C(1700000000000000000);
static const int64_t second_ns = 1000000000;

/* Makes an exchange that begins at `sent_ns`. The other times are those of the way to the
 * collector, in the collector, and back. */
static sj_clock_exchange exchange(int64_t sent_ns, int64_t there_ns, int64_t collector_ns,
                                  int64_t back_ns)
{
    const int64_t arrived_ns = sent_ns + there_ns;
    return (sj_clock_exchange){.sent_ns = sent_ns,
                               .collector_received_ns = arrived_ns + collector_offset_ns,
                               .collector_sent_ns = arrived_ns + collector_ns + collector_offset_ns,
                               .received_ns = arrived_ns + collector_ns + back_ns};
}

static void the_true_offset_lies_within_the_bound_for_any_delays(void **state)
{
    (void)state;
    srand(7);
    for (int i = 0; i < 100000; ++i) {
        const sj_clock_exchange one = exchange(1 + rand(), rand() % 1000000, rand() % 50000000,
                                               i % 2 == 0 ? 0 : rand() % 1000000);
        sj_clock_offset offset;
        assert_true(sj_clock_offset_of(&one, &offset));
        assert_true(llabs(offset.offset_ns - collector_offset_ns) <= offset.uncertainty_ns);
        assert_in_range(offset.boottime_ns, one.sent_ns, one.received_ns);
    }
}

static void the_time_in_the_collector_does_not_count(void **state)
{
    (void)state;
    const sj_clock_exchange slow = exchange(second_ns, 1000, 30 * second_ns, 1000);
    sj_clock_offset offset;
    assert_true(sj_clock_offset_of(&slow, &offset));
    assert_int_equal(offset.uncertainty_ns, 1000);
    assert_int_equal(offset.offset_ns, collector_offset_ns);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    sj_clock_offset offset;
    sj_clock_exchange odd = exchange(second_ns, 10, 10, 10);
    odd.collector_sent_ns = odd.collector_received_ns - 1; /* The clock was set back in between. */
    assert_false(sj_clock_offset_of(&odd, &offset));
    odd = exchange(second_ns, 10, 10, 10);
    odd.collector_sent_ns += second_ns; /* The clock was set forward in between. */
    assert_false(sj_clock_offset_of(&odd, &offset));
    odd = exchange(second_ns, 10, 10, 10);
    odd.collector_received_ns = 0; /* This collector sends no times. */
    odd.collector_sent_ns = 0;
    assert_false(sj_clock_offset_of(&odd, &offset));
    odd = exchange(second_ns, 10, 10, 10);
    odd.received_ns = odd.sent_ns - 1;
    assert_false(sj_clock_offset_of(&odd, &offset));
    odd.collector_received_ns = INT64_MIN;
    odd.collector_sent_ns = INT64_MAX;
    assert_false(sj_clock_offset_of(&odd, &offset));
}

static void the_first_better_and_periodic_offsets_are_reported(void **state)
{
    (void)state;
    sj_clock_offsets offsets = {0};
    sj_clock_offset tell;
    sj_clock_exchange next = exchange(second_ns, 1000, 0, 1000);
    assert_true(sj_clock_offsets_add(&offsets, &next, &tell));
    assert_int_equal(tell.uncertainty_ns, 1000);
    next = exchange(2 * second_ns, 900, 0, 900); /* It is hardly better. */
    assert_false(sj_clock_offsets_add(&offsets, &next, &tell));
    next = exchange(3 * second_ns, 300, 0, 300);
    assert_true(sj_clock_offsets_add(&offsets, &next, &tell));
    assert_int_equal(tell.uncertainty_ns, 300);
    next = exchange(100 * second_ns, 500, 0, 500);
    assert_false(sj_clock_offsets_add(&offsets, &next, &tell));
    /* A report is due. It contains the best offset since the last report. */
    next = exchange(603 * second_ns, 9000, 0, 9000);
    assert_true(sj_clock_offsets_add(&offsets, &next, &tell));
    assert_int_equal(tell.uncertainty_ns, 500);
    assert_int_equal(tell.offset_ns, collector_offset_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_true_offset_lies_within_the_bound_for_any_delays),
        cmocka_unit_test(the_time_in_the_collector_does_not_count),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(the_first_better_and_periodic_offsets_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
