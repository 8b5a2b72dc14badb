#include "agent/policy/change_obstacle.h"

#include "tests/support/check.h"

enum { ERROR = 13, FIRST = 1 };

static sj_value_rule make_rule(sj_change_action action, uint32_t position, int32_t error)
{
    const uint8_t number = sj_value_descriptor(FIRST, SJ_VALUE_INT);
    return (sj_value_rule){
        .descriptor = number,
        .changes = true,
        .change = {.action = action,
                   .target = (uint8_t)sj_value_descriptor(position, SJ_VALUE_INT),
                   .error = error}};
}

static void methods_of_mono_have_numbers_set_and_are_left_out(void **state)
{
    const sj_value_rule argument = make_rule(SJ_CHANGE_SET, FIRST, 0);
    const sj_value_rule result = make_rule(SJ_CHANGE_SET, SJ_VALUE_RESULT, 0);
    const sj_value_rule skip = make_rule(SJ_CHANGE_RETURN, SJ_VALUE_RESULT, 0);
    const sj_value_rule error = make_rule(SJ_CHANGE_NOTHING, FIRST, ERROR);
    sj_value_rule text = make_rule(SJ_CHANGE_NOTHING, FIRST, 0);
    (void)state;
    assert_int_equal(sj_change_obstacle_find(&argument, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&text, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_POSSIBLE);
    text.descriptor = sj_value_descriptor(FIRST, SJ_VALUE_STRING);
    assert_int_equal(sj_change_obstacle_find(&text, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_AT_TEXT);
    assert_int_equal(sj_change_obstacle_find(&result, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&skip, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&error, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_SETS_ERRNO);
}

static void only_methods_of_java_throw(void **state)
{
    const sj_value_rule throws = make_rule(SJ_CHANGE_THROW, FIRST, 0);
    (void)state;
    assert_int_equal(sj_change_obstacle_find(&throws, SJ_LINK_LANGUAGE_JVM), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&throws, SJ_LINK_LANGUAGE_MONO), SJ_CHANGE_THROWS);
    assert_int_equal(sj_change_obstacle_find(&throws, SJ_LINK_LANGUAGE_OBJC), SJ_CHANGE_THROWS);
}

static void methods_of_java_have_no_errno_and_native_ones_are_changed_in_every_way(void **state)
{
    const sj_value_rule argument = make_rule(SJ_CHANGE_SET, FIRST, 0);
    const sj_value_rule skip = make_rule(SJ_CHANGE_RETURN, SJ_VALUE_RESULT, ERROR);
    sj_value_rule recorded = argument;
    recorded.changes = false;
    (void)state;
    assert_int_equal(sj_change_obstacle_find(&argument, SJ_LINK_LANGUAGE_JVM), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&skip, SJ_LINK_LANGUAGE_JVM), SJ_CHANGE_SETS_ERRNO);
    assert_int_equal(sj_change_obstacle_find(&recorded, SJ_LINK_LANGUAGE_JVM), SJ_CHANGE_POSSIBLE);
    assert_int_equal(sj_change_obstacle_find(&skip, SJ_LINK_LANGUAGE_OBJC), SJ_CHANGE_POSSIBLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_of_mono_have_numbers_set_and_are_left_out),
        cmocka_unit_test(only_methods_of_java_throw),
        cmocka_unit_test(methods_of_java_have_no_errno_and_native_ones_are_changed_in_every_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
