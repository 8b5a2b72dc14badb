/* A table of changes that is not whole is none: reading behind the end of its file would end the
 * program. */
#include "agent/inproc/recorder/changes.h"

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

static void half_a_table_is_none(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_table_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
