#include "agent/objfile/system_library.h"
#include "agent/policy/selection.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void test_default_takes_the_program_and_its_own_libraries(void **state)
{
    const sj_selection selection = {0};
    (void)state;
    assert_true(sj_selection_wants_module(&selection, "/usr/bin/app", true));
    assert_true(sj_selection_wants_module(&selection, "/opt/app/libown.so", false));
    assert_false(sj_selection_wants_module(&selection, "/usr/lib/x86_64/libz.so.1", false));
    assert_false(sj_selection_wants_module(&selection, "/lib64/libz.so.1", false));
}

static void test_some_libraries_are_never_a_programs_own(void **state)
{
    sj_selection selection = {0};
    (void)state;
    assert_true(sj_selection_allows_own_library(&selection, "/usr/lib/libjq.so.1"));
    assert_true(sj_selection_allows_own_library(&selection, "/usr/lib/libmount.so.1"));
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libc.so.6"));
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libm.so.6"));
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libstdc++.so.6"));
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libgtk-3.so.0"));
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/jvm/libjvm.so"));
    assert_int_equal(sj_selection_add(selection.modules_excluded, &selection.modules_excluded_count,
                                      "libjq*", NULL),
                     SJ_OK);
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libjq.so.1"));
    assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "app", NULL),
                     SJ_OK);
    assert_false(sj_selection_allows_own_library(&selection, "/usr/lib/libmount.so.1"));
    sj_selection_free(&selection);
}

static void test_libraries_that_the_agent_needs_are_never_hooked(void **state)
{
    sj_selection selection = {.all_libraries = true};
    (void)state;
    assert_true(sj_selection_wants_module(&selection, "/usr/lib/libz.so.1", false));
    assert_false(sj_selection_wants_module(&selection, "/usr/lib/libc.so.6", false));
    assert_false(sj_selection_wants_module(&selection, "/lib64/ld-linux-x86-64.so.2", false));
    assert_false(sj_selection_wants_module(&selection, "/x/libsojourn-agent.so", false));
    assert_false(sj_selection_wants_module(&selection, "", false));
    assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "*libc*", NULL),
                     SJ_OK);
    assert_false(sj_selection_wants_module(&selection, "/usr/lib/libc.so.6", false));
    sj_selection_free(&selection);
}

static void test_module_globs_replace_the_default(void **state)
{
    sj_selection selection = {0};
    (void)state;
    assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "libz.*", NULL),
                     SJ_OK);
    assert_true(sj_selection_wants_module(&selection, "/usr/lib/libz.so.1", false));
    assert_false(sj_selection_wants_module(&selection, "/usr/bin/app", true));
    sj_selection_free(&selection);
}

static void test_function_globs_include_and_exclude(void **state)
{
    sj_selection selection = {.functions = {{.text = (char *)(uintptr_t) "net_*"}},
                              .function_count = 1,
                              .excluded = {{.text = (char *)(uintptr_t) "*_lock"}},
                              .excluded_count = 1};
    (void)state;
    assert_true(sj_selection_wants_function(&selection, "net_send", 0, 1));
    assert_false(sj_selection_wants_function(&selection, "net_lock", 0, 1));
    assert_false(sj_selection_wants_function(&selection, "disk_read", 0, 1));
    assert_false(sj_selection_wants_function(&selection, "", 0, 1));
}

/* Functions of other languages, and of map files, have names that look like imports. */
static void test_names_with_exclamation_marks_are_names(void **state)
{
    sj_selection selection = {0};
    (void)state;
    assert_true(sj_selection_wants_function(&selection, "operator!=(Shape const&)", 0, 1));
    assert_true(sj_selection_wants_function(&selection, "julia_push!_12", 0, 1));
}

static void test_library_calls_make_another_selection(void **state)
{
    const sj_selection without = {0};
    const sj_selection with_calls = {.library_calls = true};
    (void)state;
    assert_true(sj_selection_same(&with_calls, &with_calls));
    assert_false(sj_selection_same(&without, &with_calls));
}

static void test_functions_without_a_source_match_no_source_glob(void **state)
{
    sj_selection selection = {0};
    (void)state;
    assert_true(sj_selection_wants_source(&selection, NULL));
    assert_int_equal(sj_selection_add(selection.sources_excluded, &selection.sources_excluded_count,
                                      "*test*", NULL),
                     SJ_OK);
    assert_true(sj_selection_wants_source(&selection, NULL));
    assert_true(sj_selection_wants_source(&selection, "src/main.c"));
    assert_false(sj_selection_wants_source(&selection, "src/test_main.c"));
    assert_int_equal(sj_selection_add(selection.sources, &selection.source_count, "src/*", NULL),
                     SJ_OK);
    assert_false(sj_selection_wants_source(&selection, NULL));
    assert_true(sj_selection_wants_source(&selection, "src/main.c"));
    assert_false(sj_selection_wants_source(&selection, "src/test_main.c"));
    assert_false(sj_selection_wants_source(&selection, "other/main.c"));
    sj_selection_free(&selection);
}

static void test_too_many_or_empty_globs_are_refused(void **state)
{
    sj_selection selection = {0};
    (void)state;
    assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "", NULL),
                     SJ_EINVAL);
    for (int i = 0; i < SJ_SELECTION_GLOBS; i++) {
        assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "x", NULL),
                         SJ_OK);
    }
    assert_int_equal(sj_selection_add(selection.modules, &selection.module_count, "x", NULL),
                     SJ_ELIMIT);
    sj_selection_free(&selection);
}

/* The real file counts, not the path by which it was loaded. */
static void a_module_path_is_resolved_to_the_real_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/sojourn-real-XXXXXX";
    char path[PATH_MAX] = "/usr/bin/../lib/os-release";
    char wanted[PATH_MAX];
    sj_real_module_path(path);
    assert_string_equal(path, "/usr/lib/os-release");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/libx.so", folder);
    assert_int_equal(symlink("/usr/lib/os-release", path), 0);
    snprintf(wanted, sizeof(wanted), "%s", path);
    sj_real_module_path(path); /* the link in the program's folder leads to a system file */
    assert_string_equal(path, "/usr/lib/os-release");
    assert_int_equal(unlink(wanted), 0);
    assert_int_equal(close(creat(wanted, 0600)), 0);
    snprintf(path, sizeof(path), "/usr/lib/../../%s/./libx.so", folder);
    assert_true(sj_is_system_library(path));
    sj_real_module_path(path);
    assert_string_equal(path, wanted);
    assert_int_equal(unlink(wanted), 0);
    assert_int_equal(rmdir(folder), 0);
    sj_real_module_path(path); /* the file is gone, so the path stays */
    assert_string_equal(path, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_takes_the_program_and_its_own_libraries),
        cmocka_unit_test(test_some_libraries_are_never_a_programs_own),
        cmocka_unit_test(test_libraries_that_the_agent_needs_are_never_hooked),
        cmocka_unit_test(test_module_globs_replace_the_default),
        cmocka_unit_test(test_function_globs_include_and_exclude),
        cmocka_unit_test(test_names_with_exclamation_marks_are_names),
        cmocka_unit_test(test_library_calls_make_another_selection),
        cmocka_unit_test(test_functions_without_a_source_match_no_source_glob),
        cmocka_unit_test(test_too_many_or_empty_globs_are_refused),
        cmocka_unit_test(a_module_path_is_resolved_to_the_real_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
