/* A table of changes that is cut short is refused, because reading beyond the end of its file would
 * kill the program. */
#include "agent/inproc/recorder/changes.h"
#include "proto/block/value.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void check_map(const char *directory, bool is_there)
{
    sj_recorder_map_changes(directory);
    assert_true((sj_recorder_changes != NULL) == is_there);
}

static void an_incomplete_table_is_not_mapped(void **state)
{
    char directory[] = "/dev/shm/sj-changes-XXXXXX";
    char path[PATH_MAX];
    sj_changes *changes = calloc(1, sizeof(*changes));
    (void)state;
    assert_non_null(changes);
    assert_non_null(mkdtemp(directory));
    changes->magic = SJ_CHANGES_MAGIC;
    assert_true(readlink("/proc/self/exe", changes->program, sizeof(changes->program) - 1) > 0);
    snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME, directory);
    check_map(directory, false);
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    check_map(directory, false); /* empty */
    assert_int_equal(ftruncate(file, sizeof(*changes)), 0);
    check_map(directory, false); /* without its beginning */
    assert_int_equal(write(file, changes, sizeof(*changes)), sizeof(*changes));
    assert_int_equal(ftruncate(file, sizeof(*changes) - 1), 0);
    check_map(directory, false); /* without its end */
    assert_int_equal(ftruncate(file, sizeof(*changes)), 0);
    check_map(directory, true);
    sj_recorder_unmap_changes();
    close(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    free(changes);
}

/* Tests which kinds and numbers a rule can set in each argument type. */
static void only_values_that_fit_the_argument_are_set(void **state)
{
    static const sj_changed_number boolean = {.bytes = 1, .most = 1};
    static const sj_changed_number small = {.bytes = 2, .most = UINT16_MAX};
    static const sj_changed_number whole = {.bytes = 4, .most = UINT32_MAX};
    static const sj_changed_number wide = {.bytes = 8, .most = UINT64_MAX};
    static const sj_changed_number single = {.is_real = true, .bytes = 4};
    static const sj_changed_number real = {.is_real = true, .bytes = 8};
    static const struct {
        sj_value_kind kind;
        int64_t bits;
        sj_changed_number number;
        bool fits;
    } cases[] = {{SJ_VALUE_BOOL, 1, boolean, true},        {SJ_VALUE_INT, 1, boolean, true},
                 {SJ_VALUE_INT, 2, boolean, false},        {SJ_VALUE_INT, -1, boolean, false},
                 {SJ_VALUE_LONG, 1, boolean, false},       {SJ_VALUE_INT, 65535, small, true},
                 {SJ_VALUE_INT, 65536, small, false},      {SJ_VALUE_INT, -32768, small, true},
                 {SJ_VALUE_INT, -32769, small, false},     {SJ_VALUE_INT, INT32_MIN, whole, true},
                 {SJ_VALUE_UINT, UINT32_MAX, whole, true}, {SJ_VALUE_LONG, 1, whole, false},
                 {SJ_VALUE_LONG, INT64_MIN, wide, true},   {SJ_VALUE_INT, -1, wide, true},
                 {SJ_VALUE_FLOAT, 0, single, true},        {SJ_VALUE_DOUBLE, 0, single, false},
                 {SJ_VALUE_DOUBLE, 0, real, true},         {SJ_VALUE_FLOAT, 0, real, false},
                 {SJ_VALUE_INT, 0, real, false},           {SJ_VALUE_DOUBLE, 0, wide, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const sj_due_change due = {.target = sj_value_descriptor(1, cases[i].kind),
                                   .bits = (uint64_t)cases[i].bits};
        assert_int_equal(sj_recorder_change_fits(&due, cases[i].number), cases[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_incomplete_table_is_not_mapped),
        cmocka_unit_test(only_values_that_fit_the_argument_are_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
