#include "agent/policy/selection.h"

#include "tests/support/check.h"

static void add(sj_pattern *patterns, size_t *count, const char *text)
{
    assert_int_equal(sj_pattern_make(text, &patterns[(*count)++], NULL), SJ_OK);
}

static void test_the_systems_packages_are_not_wanted(void **state)
{
    const sj_selection selection = {0};
    (void)state;
    assert_false(
        sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "java.util.List", false));
    assert_false(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM,
                                          "com.sun.tools.javac.Main", false));
    assert_false(
        sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "android.view.View", false));
    assert_true(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "org.acme.Main", false));
    assert_false(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "com.acme.Main", true));
    assert_true(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "com.acme.Main", false));
    assert_true(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "javanese.Main", false));
}

static void test_libraries_bring_the_systems_classes(void **state)
{
    const sj_selection selection = {.all_libraries = true};
    (void)state;
    assert_true(sj_selection_wants_class(&selection, SJ_LINK_LANGUAGE_JVM, "java.util.List", true));
}

static void test_patterns_of_the_user_replace_the_systems(void **state)
{
    const sj_runtime *java = sj_runtimes[SJ_LINK_LANGUAGE_JVM];
    sj_class_filter filter = {.has_system = true};
    (void)state;
    add(filter.system, &filter.system_count, "org.*");
    assert_true(sj_class_filter_is_system(&filter, java, "org.acme.Main"));
    assert_false(sj_class_filter_is_system(&filter, java, "com.sun.tools.javac.Main"));
    sj_class_filter_free(&filter);
}

static void test_classes_are_chosen_by_name(void **state)
{
    sj_class_filter filter = {0};
    const sj_class_filter other = {0};
    (void)state;
    add(filter.classes, &filter.class_count, "com.acme.*");
    add(filter.excluded, &filter.excluded_count, "com.acme.Noisy");
    assert_true(sj_class_filter_wants_class(&filter, "com.acme.Main$Inner"));
    assert_false(sj_class_filter_wants_class(&filter, "com.acme.Noisy"));
    assert_false(sj_class_filter_wants_class(&filter, "net.acme.Main"));
    assert_true(sj_class_filter_same(&filter, &filter));
    assert_false(sj_class_filter_same(&filter, &other));
    sj_class_filter_free(&filter);
}

static void test_classes_are_chosen_by_loader_and_by_descent(void **state)
{
    static const char lineage[] = "com.acme.Base\0java.lang.Runnable";
    const sj_slice names = {.data = (const uint8_t *)lineage, .size = sizeof(lineage)};
    const sj_slice open_ended = {.data = (const uint8_t *)lineage, .size = sizeof(lineage) - 1};
    sj_class_filter filter = {0};
    const sj_class_filter other = {0};
    (void)state;
    assert_true(sj_class_filter_wants_loader(&filter, "app"));
    assert_true(sj_class_filter_wants_descendant(&filter, "com.acme.Main", names));
    add(filter.loaders, &filter.loader_count, "com.acme.*");
    assert_true(sj_class_filter_wants_loader(&filter, "com.acme.PluginLoader"));
    assert_false(sj_class_filter_wants_loader(&filter, "app"));
    assert_false(sj_class_filter_same(&filter, &other));
    add(filter.ancestors, &filter.ancestor_count, "*.Runnable");
    assert_true(sj_class_filter_wants_descendant(&filter, "com.acme.Main", names));
    assert_true(sj_class_filter_wants_descendant(&filter, "my.Runnable", (sj_slice){0}));
    assert_false(sj_class_filter_wants_descendant(&filter, "com.acme.Main", (sj_slice){0}));
    assert_false(sj_class_filter_wants_descendant(&filter, "com.acme.Main", open_ended));
    sj_class_filter_free(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_systems_packages_are_not_wanted),
        cmocka_unit_test(test_classes_are_chosen_by_loader_and_by_descent),
        cmocka_unit_test(test_libraries_bring_the_systems_classes),
        cmocka_unit_test(test_patterns_of_the_user_replace_the_systems),
        cmocka_unit_test(test_classes_are_chosen_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
