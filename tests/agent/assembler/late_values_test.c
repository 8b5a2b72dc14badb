/* Tests entry values that wait for the exit: of nested calls, and of calls whose exits were not
 * seen. */
#include "agent/assembler/late_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void put(sj_late_values *late, uint64_t call, uint32_t depth, size_t count)
{
    sj_block_value values[4] = {0};
    for (size_t i = 0; i < count; i++) {
        values[i].bits = call * 10 + i;
    }
    assert_int_equal(sj_late_values_push(late, call, depth, values, count), SJ_OK);
}

static void check_popped(sj_late_values *late, uint64_t call, size_t count)
{
    const sj_block_value *values;
    assert_int_equal(sj_late_values_pop(late, call, &values), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(values[i].bits, call * 10 + i);
    }
}

static void test_each_call_gets_its_own_values(void **state)
{
    sj_late_values late = {0};
    (void)state;
    put(&late, 1, 1, 2);
    put(&late, 2, 2, 3);
    put(&late, 3, 5, 1);
    check_popped(&late, 3, 1);
    check_popped(&late, 3, 0);
    check_popped(&late, 2, 3);
    put(&late, 4, 2, 4);
    check_popped(&late, 4, 4);
    check_popped(&late, 1, 2);
    assert_int_equal(late.value_count, 0);
    sj_late_values_deinit(&late);
}

static void test_values_of_calls_without_an_exit_are_removed(void **state)
{
    sj_late_values late = {0};
    (void)state;
    put(&late, 1, 1, 1);
    put(&late, 2, 2, 1);
    put(&late, 3, 3, 1);
    put(&late, 4, 2, 2); /* an exception left 2 and 3 */
    check_popped(&late, 3, 0);
    check_popped(&late, 4, 2);
    put(&late, 5, 2, 1);
    check_popped(&late, 1, 1); /* call 5 ended with call 1 */
    check_popped(&late, 5, 0);
    sj_late_values_deinit(&late);
}

static void test_values_beyond_the_capacity_are_refused(void **state)
{
    sj_late_values late = {0};
    const sj_block_value value = {0};
    (void)state;
    for (uint32_t i = 0; i < SJ_LATE_VALUES / 4; i++) {
        put(&late, i, i + 1, 4);
    }
    assert_int_equal(sj_late_values_push(&late, 1 << 30, SJ_LATE_VALUES, &value, 1), SJ_EFULL);
    check_popped(&late, 1 << 30, 0);
    check_popped(&late, SJ_LATE_VALUES / 4 - 1, 4);
    sj_late_values_deinit(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_gets_its_own_values),
        cmocka_unit_test(test_values_of_calls_without_an_exit_are_removed),
        cmocka_unit_test(test_values_beyond_the_capacity_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
