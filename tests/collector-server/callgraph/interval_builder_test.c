/* Intervals alone against the order of events: the same calls. */
#include "collector-server/callgraph/interval_builder.h"
#include "tests/support/call_trace.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

/* The calls of a whole program as intervals in order of entry, then shuffled by (key, order). */
static sj_interval *intervals_of(const call_trace *trace)
{
    sj_interval *made = malloc(trace->call_count * sizeof(*made));
    assert_non_null(made);
    for (size_t i = 0; i < trace->call_count; i++) {
        const trace_call *call = &trace->calls[i];
        made[i] = (sj_interval){.start_ticks = call->start,
                                .end_ticks = call->end,
                                .function = call->function,
                                .depth = call->depth};
    }
    return made;
}

static void assert_same_calls(const call_trace *trace, const sj_interval_call *calls,
                              const uint32_t *source)
{
    for (size_t i = 0; i < trace->call_count; i++) {
        const trace_call *call = &trace->calls[i];
        assert_int_equal(source != NULL ? source[calls[i].source] : calls[i].source, i);
        assert_int_equal(calls[i].parent, call->parent);
        assert_int_equal(calls[i].depth, call->depth);
        assert_int_equal(calls[i].child_ticks, call->child);
    }
}

static void test_with_depths_the_calls_are_those_of_the_order_at_any_clock(void **state)
{
    (void)state;
    const uint32_t steps[] = {0, 1, 26};
    for (size_t i = 0; i < 3; i++) {
        const trace_shape shape = {.seed = i,
                                   .calls = 5000,
                                   .functions = 9,
                                   .max_depth = 12,
                                   .tick_step = steps[i],
                                   .tick_choices = 2,
                                   .leave_all = true};
        call_trace trace = trace_generate(&shape);
        sj_interval *intervals = intervals_of(&trace);
        sj_interval_call *calls = malloc(trace.call_count * sizeof(*calls));
        size_t overlapping;
        assert_int_equal(sj_intervals_build(intervals, trace.call_count,
                                            SJ_INTERVALS_BY_ENTRY_DEPTH, calls, &overlapping),
                         SJ_OK);
        assert_int_equal(overlapping, 0);
        assert_same_calls(&trace, calls, NULL);
        free(calls);
        free(intervals);
        trace_free(&trace);
    }
}

static void test_shuffled_intervals_without_ties_give_the_calls_of_the_order(void **state)
{
    (void)state;
    const trace_shape shape = {.seed = 9,
                               .calls = 5000,
                               .functions = 9,
                               .max_depth = 12,
                               .tick_step = 1,
                               .tick_choices = 40,
                               .leave_all = true};
    call_trace trace = trace_generate(&shape);
    for (size_t i = 0; i < trace.call_count; i++) { /* strictly rising: no two times are equal */
        trace.calls[i].start = trace.calls[i].start * 20000 + trace.calls[i].enter_event;
        trace.calls[i].end = trace.calls[i].end * 20000 + trace.calls[i].leave_event;
        trace.calls[i].child = 0;
    }
    for (size_t i = trace.call_count; i-- > 0;) {
        const trace_call *call = &trace.calls[i];
        if (call->parent != UINT32_MAX) {
            trace.calls[call->parent].child += call->end - call->start;
        }
    }
    sj_interval *intervals = intervals_of(&trace);
    uint32_t *source = malloc(trace.call_count * sizeof(*source));
    sj_interval_call *calls = malloc(trace.call_count * sizeof(*calls));
    uint64_t random = 4;
    for (size_t i = 0; i < trace.call_count; i++) {
        source[i] = (uint32_t)i;
    }
    for (size_t i = trace.call_count; i > 1; i--) {
        const size_t other = trace_random(&random) % i;
        const sj_interval interval = intervals[i - 1];
        const uint32_t number = source[i - 1];
        intervals[i - 1] = intervals[other];
        source[i - 1] = source[other];
        intervals[other] = interval;
        source[other] = number;
    }
    size_t overlapping;
    for (int order = SJ_INTERVALS_UNORDERED; order <= SJ_INTERVALS_BY_EXIT; order++) {
        assert_int_equal(sj_intervals_build(intervals, trace.call_count, (sj_interval_order)order,
                                            calls, &overlapping),
                         SJ_OK);
        assert_int_equal(overlapping, 0);
        assert_same_calls(&trace, calls, source);
    }
    free(calls);
    free(source);
    free(intervals);
    trace_free(&trace);
}

/* The definition, read literally: the innermost of the calls before it in preorder that contains
 * the interval. */
static void test_ties_follow_the_definition(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < 300; round++) {
        sj_interval intervals[24];
        sj_interval_call calls[24];
        size_t count = 0;
        intervals[count++] = (sj_interval){.start_ticks = 0, .end_ticks = 16};
        for (uint64_t width = 8; width > 0; width /= 2) { /* halves: laminar, with many ties */
            for (uint64_t at = 0; at < 16 && count < 24; at += width) {
                if (trace_random(&random) % 2 != 0) {
                    intervals[count++] = (sj_interval){.start_ticks = at, .end_ticks = at + width};
                    if (trace_random(&random) % 4 == 0 && count < 24) {
                        intervals[count] = intervals[count - 1];
                        count++;
                    }
                }
            }
        }
        size_t overlapping;
        assert_int_equal(
            sj_intervals_build(intervals, count, SJ_INTERVALS_UNORDERED, calls, &overlapping),
            SJ_OK);
        for (size_t i = 0; i < count; i++) {
            const sj_interval *own = &intervals[calls[i].source];
            uint32_t expected = SJ_INTERVAL_NO_PARENT;
            for (size_t j = 0; j < i; j++) {
                const sj_interval *other = &intervals[calls[j].source];
                if (other->start_ticks <= own->start_ticks && other->end_ticks >= own->end_ticks) {
                    expected = (uint32_t)j;
                }
            }
            assert_int_equal(calls[i].parent, expected);
        }
    }
}

static void test_equal_intervals_nest_by_the_order_listed(void **state)
{
    (void)state;
    const sj_interval equal[] = {{.start_ticks = 5, .end_ticks = 9, .function = 1},
                                 {.start_ticks = 5, .end_ticks = 9, .function = 2}};
    sj_interval_call calls[2];
    size_t overlapping;
    assert_int_equal(sj_intervals_build(equal, 2, SJ_INTERVALS_UNORDERED, calls, &overlapping),
                     SJ_OK);
    assert_int_equal(calls[0].source, 0);
    assert_int_equal(calls[1].parent, 0);
    assert_int_equal(sj_intervals_build(equal, 2, SJ_INTERVALS_BY_EXIT, calls, &overlapping),
                     SJ_OK);
    assert_int_equal(calls[0].source, 1);
}

static void test_what_cannot_be_calls_is_told(void **state)
{
    (void)state;
    const sj_interval crossing[] = {{.start_ticks = 0, .end_ticks = 10},
                                    {.start_ticks = 5, .end_ticks = 15}};
    const sj_interval backwards = {.start_ticks = 5, .end_ticks = 4};
    const sj_interval floating = {.start_ticks = 5, .end_ticks = 6, .depth = 1};
    sj_interval_call calls[2];
    size_t overlapping;
    assert_int_equal(sj_intervals_build(crossing, 2, SJ_INTERVALS_UNORDERED, calls, &overlapping),
                     SJ_OK);
    assert_int_equal(overlapping, 1);
    assert_int_equal(calls[1].parent, SJ_INTERVAL_NO_PARENT);
    assert_int_equal(sj_intervals_build(&backwards, 1, SJ_INTERVALS_UNORDERED, calls, &overlapping),
                     SJ_EINVAL);
    assert_int_equal(
        sj_intervals_build(&floating, 1, SJ_INTERVALS_BY_ENTRY_DEPTH, calls, &overlapping),
        SJ_EINVAL);
    assert_int_equal(sj_intervals_build(NULL, 0, SJ_INTERVALS_UNORDERED, calls, &overlapping),
                     SJ_OK);
    fail_alloc_at(0);
    assert_int_equal(sj_intervals_build(crossing, 2, SJ_INTERVALS_UNORDERED, calls, &overlapping),
                     SJ_ENOMEM);
    assert_true(fail_alloc_stop());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_depths_the_calls_are_those_of_the_order_at_any_clock),
        cmocka_unit_test(test_shuffled_intervals_without_ties_give_the_calls_of_the_order),
        cmocka_unit_test(test_ties_follow_the_definition),
        cmocka_unit_test(test_equal_intervals_nest_by_the_order_listed),
        cmocka_unit_test(test_what_cannot_be_calls_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
