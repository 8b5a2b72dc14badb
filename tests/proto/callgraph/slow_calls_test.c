#include "proto/callgraph/slow_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void add(sj_slow_calls *slow, uint32_t function, uint64_t index, uint64_t ticks)
{
    const sj_slow_call call = {.call_index = index, .duration_ticks = ticks};
    assert_int_equal(sj_slow_calls_add(slow, function, &call), SJ_OK);
}

static void a_function_keeps_its_longest_calls_in_order(void **state)
{
    (void)state;
    static const uint64_t ticks[] = {5, 90, 7, 7, 100, 3, 90, 8, 7};
    static const uint64_t kept[] = {4, 1, 6, 7, 2}; /* of equal ones the first */
    sj_slow_calls slow = {.floor_ticks = 4};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); ++i) {
        add(&slow, 77, i, ticks[i]);
        add(&slow, 12, i, 2); /* below the floor */
    }
    assert_int_equal(slow.list_count, 1);
    assert_int_equal(slow.call_count, SJ_SLOW_CALLS_A_FUNCTION);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); ++i) {
        assert_int_equal(slow.lists[0].calls[i].call_index, kept[i]);
    }
    assert_int_equal(sj_slow_calls_threshold(&slow, 77), 7);
    assert_int_equal(sj_slow_calls_threshold(&slow, 12), 4);
    sj_slow_calls_deinit(&slow);
}

/* With more functions than a session may list calls, the longest of all stay, and each function
 * loses its shortest first. */
static void a_session_keeps_a_bounded_number(void **state)
{
    (void)state;
    enum { FUNCTIONS = 6000, CALLS = 6 };
    sj_slow_calls slow = {0};
    for (uint32_t call = 0; call < CALLS; ++call) {
        for (uint32_t function = 1; function <= FUNCTIONS; ++function) {
            add(&slow, function, call, (uint64_t)function * 10 + call);
            assert_true(slow.call_count <= SJ_SLOW_CALLS_A_SESSION);
        }
    }
    uint32_t counted = 0;
    for (uint32_t i = 0; i < slow.list_count; ++i) {
        const sj_slow_list *list = &slow.lists[i];
        counted += list->count;
        for (uint32_t k = 0; k < list->count; ++k) {
            assert_true(list->calls[k].duration_ticks > slow.floor_ticks);
            assert_int_equal(list->calls[k].call_index, CALLS - 1 - k);
        }
    }
    assert_int_equal(counted, slow.call_count);
    assert_true(counted >= SJ_SLOW_CALLS_A_SESSION / 4);
    /* what is longer than the floor is there, all of it */
    for (uint32_t i = 0; i < slow.list_count; ++i) {
        const sj_slow_list *list = &slow.lists[i];
        if (list->count < SJ_SLOW_CALLS_A_FUNCTION) {
            const uint64_t next = (uint64_t)list->function * 10 + CALLS - 1 - list->count;
            assert_true(next <= slow.floor_ticks);
        }
    }
    sj_slow_calls_deinit(&slow);
}

static void changed_lists_are_reported_once(void **state)
{
    (void)state;
    sj_slow_calls slow = {0};
    add(&slow, 1, 1, 10);
    add(&slow, 1, 2, 20);
    add(&slow, 2, 3, 30);
    assert_int_equal(slow.dirty_count, 2);
    sj_slow_calls_clean(&slow);
    assert_int_equal(slow.dirty_count, 0);
    add(&slow, 2, 4, 40);
    assert_int_equal(slow.dirty_count, 1);
    assert_int_equal(slow.lists[slow.dirty[0]].function, 2);
    sj_slow_calls_deinit(&slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_keeps_its_longest_calls_in_order),
        cmocka_unit_test(a_session_keeps_a_bounded_number),
        cmocka_unit_test(changed_lists_are_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
