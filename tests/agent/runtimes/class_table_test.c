#include "agent/runtimes/class_table.h"

#include "agent/policy/class_filter.h"
#include "tests/support/check.h"

#define LINEAGE(text)                                                                              \
    (sj_slice)                                                                                     \
    {                                                                                              \
        .data = (const uint8_t *)(text), .size = sizeof(text) - 1                                  \
    }

static int set_up(void **state)
{
    sj_class_table *table = NULL;
    assert_int_equal(sj_class_table_new(&table), SJ_OK);
    *state = table;
    return 0;
}

static int tear_down(void **state)
{
    sj_class_table_free(*state);
    return 0;
}

static void test_a_lineage_is_found_by_each_of_its_names(void **state)
{
    sj_known_class class = {0};
    assert_false(sj_class_table_find(*state, "Made", &class));
    assert_int_equal(sj_class_table_learn(*state, LINEAGE("Made\0View\0NSObject\0NSObject\0")),
                     SJ_OK);
    assert_true(sj_class_table_find(*state, "Made", &class));
    assert_string_equal(class.super, "View");
    assert_false(class.is_system);
    assert_true(sj_class_table_find(*state, "View", &class));
    assert_string_equal(class.super, "NSObject");
    assert_true(sj_class_table_find(*state, "NSObject", &class));
    assert_null(class.super);
    assert_true(class.is_system);
}

static void test_a_known_class_keeps_its_superclass(void **state)
{
    sj_known_class class = {0};
    assert_int_equal(sj_class_table_learn(*state, LINEAGE("View\0NSObject\0")), SJ_OK);
    assert_int_equal(sj_class_table_learn(*state, LINEAGE("Made\0View\0Other\0")), SJ_OK);
    assert_true(sj_class_table_find(*state, "View", &class));
    assert_string_equal(class.super, "NSObject");
    assert_true(sj_class_table_find(*state, "Other", &class));
}

static void test_ancestor_filters_use_learnt_classes(void **state)
{
    const sj_class_filter filter = {.ancestors = {{.text = (char *)(uintptr_t) "View"}},
                                    .ancestor_count = 1,
                                    .find = sj_class_table_find,
                                    .context = *state};
    assert_false(sj_class_filter_wants(&filter, "-[Made:NSObject retain]"));
    assert_int_equal(sj_class_table_learn(*state, LINEAGE("Made\0Button\0View\0NSObject\0")),
                     SJ_OK);
    assert_true(sj_class_filter_wants(&filter, "-[Made:NSObject retain]"));
    assert_true(sj_class_filter_wants(&filter, "+[Button new]"));
    assert_false(sj_class_filter_wants(&filter, "-[NSObject retain]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_lineage_is_found_by_each_of_its_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_known_class_keeps_its_superclass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ancestor_filters_use_learnt_classes, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
