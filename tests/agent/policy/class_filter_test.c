#include "agent/policy/class_filter.h"

#include "tests/support/check.h"

#define PATTERN(glob)                                                                              \
    {                                                                                              \
        .text = (char *)(uintptr_t)(glob)                                                          \
    }

/* Button inherits from View, View from Responder, Responder from NSObject. Loop inherits from
 * itself. Other names are unknown. */
static bool find(void *context, const char *name, sj_known_class *class)
{
    static const sj_known_class known[] = {
        {"NSObject", NULL, true},  {"Responder", "NSObject", true}, {"View", "Responder", false},
        {"Button", "View", false}, {"Loop", "Loop", false},         {"NSMine", "NSObject", false}};
    (void)context;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *class = known[i];
            return true;
        }
    }
    return false;
}

static void test_a_class_filter_accepts_all_functions(void **state)
{
    const sj_class_filter filter = {.classes = {PATTERN("Nothing")}, .class_count = 1};
    (void)state;
    assert_true(sj_class_filter_wants(&filter, "main"));
    assert_true(sj_class_filter_wants(&filter, "-x"));
    assert_true(sj_class_filter_wants(&filter, ""));
    assert_false(sj_class_filter_wants(&filter, "-[View draw]"));
}

static void test_classes_are_those_of_the_receiver(void **state)
{
    const sj_class_filter filter = {.classes = {PATTERN("But*"), PATTERN("Loop")},
                                    .class_count = 2,
                                    .excluded = {PATTERN("Butter")},
                                    .excluded_count = 1};
    (void)state;
    assert_true(sj_class_filter_wants(&filter, "-[Button draw:in:]"));
    assert_true(sj_class_filter_wants(&filter, "+[Button(Later) new]"));
    assert_true(sj_class_filter_wants(&filter, "-[Button:View draw]"));
    assert_false(sj_class_filter_wants(&filter, "-[View:Button draw]"));
    assert_false(sj_class_filter_wants(&filter, "-[Butter melt]"));
}

static void test_a_selector_pattern_chooses_methods(void **state)
{
    const sj_class_filter filter = {.selectors = {PATTERN("draw*")}, .selector_count = 1};
    (void)state;
    assert_true(sj_class_filter_wants(&filter, "-[View(Later) drawRect:]"));
    assert_false(sj_class_filter_wants(&filter, "-[draw redraw]"));
}

static void test_an_ancestor_pattern_chooses_subclasses(void **state)
{
    const sj_class_filter filter = {
        .ancestors = {PATTERN("Responder")}, .ancestor_count = 1, .find = find};
    (void)state;
    assert_true(sj_class_filter_needs_classes(&filter));
    assert_true(sj_class_filter_wants(&filter, "-[Responder touch]"));
    assert_true(sj_class_filter_wants(&filter, "-[Button touch]"));
    assert_false(sj_class_filter_wants(&filter, "-[NSObject retain]"));
    assert_false(sj_class_filter_wants(&filter, "-[Loop round]"));
    assert_false(sj_class_filter_wants(&filter, "-[Foreign touch]"));
}

static void test_system_classes_are_those_that_system_libraries_define(void **state)
{
    const sj_class_filter filter = {.without_system = true, .find = find};
    (void)state;
    assert_false(sj_class_filter_wants(&filter, "-[Responder touch]"));
    assert_false(sj_class_filter_wants(&filter, "-[NSForeign touch]"));
    assert_true(sj_class_filter_wants(&filter, "-[NSMine touch]"));
    assert_true(sj_class_filter_wants(&filter, "-[Button:NSObject retain]"));
    assert_true(sj_class_filter_wants(&filter, "-[Foreign touch]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_class_filter_accepts_all_functions),
        cmocka_unit_test(test_classes_are_those_of_the_receiver),
        cmocka_unit_test(test_a_selector_pattern_chooses_methods),
        cmocka_unit_test(test_an_ancestor_pattern_chooses_subclasses),
        cmocka_unit_test(test_system_classes_are_those_that_system_libraries_define),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
