/* Tests whose certificate and key the collector accepts. */
#include "collector-server/fleet/certificate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANOTHER_USER = 65534 };

static char folder[32];
static char files[3][64]; /* the folder, the certificate, the key */

static sj_status load(sj_error *error)
{
    char certificate[SJ_PEM_MAX_BYTES];
    char key[SJ_PEM_MAX_BYTES];
    return sj_certificate_load(folder, certificate, key, error);
}

static int make(void **state)
{
    sj_error error;
    (void)state;
    snprintf(folder, sizeof(folder), "certificate_test.%d", (int)getpid());
    snprintf(files[0], sizeof(files[0]), "%s", folder);
    snprintf(files[1], sizeof(files[1]), "%s/certificate.pem", folder);
    snprintf(files[2], sizeof(files[2]), "%s/key.pem", folder);
    return load(&error) == SJ_OK ? 0 : -1;
}

static int remove_all(void **state)
{
    (void)state;
    unlink(files[1]);
    unlink(files[2]);
    return rmdir(folder);
}

static void files_that_other_users_can_access_are_refused(void **state)
{
    static const struct {
        int file;
        mode_t mode;
        sj_status status;
    } cases[] = {{0, 0755, SJ_OK}, {0, 0775, SJ_EPERM}, {0, 0707, SJ_EPERM}, {0, 0700, SJ_OK},
                 {1, 0644, SJ_OK}, {1, 0664, SJ_EPERM}, {1, 0646, SJ_EPERM}, {1, 0600, SJ_OK},
                 {2, 0640, SJ_OK}, {2, 0644, SJ_EPERM}, {2, 0660, SJ_EPERM}, {2, 0602, SJ_EPERM},
                 {2, 0400, SJ_OK}, {2, 0600, SJ_OK}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sj_error error = {0};
        assert_int_equal(chmod(files[cases[i].file], cases[i].mode), 0);
        const sj_status status = load(&error);
        if (status != cases[i].status) {
            fail_msg("%s of mode %o gave %d: %s", files[cases[i].file], cases[i].mode, status,
                     error.text);
        }
        if (status != SJ_OK) {
            assert_non_null(strstr(error.text, files[cases[i].file]));
            assert_int_equal(chmod(files[cases[i].file], cases[i].file == 0 ? 0700 : 0600), 0);
        }
    }
}

static void files_of_another_user_are_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* this process cannot change the owner */
    }
    for (int i = 0; i < 3; i++) {
        sj_error error = {0};
        assert_int_equal(chown(files[i], ANOTHER_USER, (gid_t)-1), 0);
        assert_int_equal(load(&error), SJ_EPERM);
        assert_non_null(strstr(error.text, "belongs to another user"));
        assert_int_equal(chown(files[i], 0, (gid_t)-1), 0);
    }
}

static void a_file_that_cannot_be_read_is_not_empty(void **state)
{
    char pem[SJ_PEM_MAX_BYTES];
    char longest[SJ_PEM_MAX_BYTES];
    char path[96];
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_certificate_read(folder, pem, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "directory"));
    snprintf(path, sizeof(path), "%s/long.pem", folder);
    memset(longest, 'x', sizeof(longest));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(longest, 1, sizeof(longest), file), sizeof(longest));
    fclose(file);
    assert_int_equal(sj_certificate_read(path, pem, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "too long"));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(sj_certificate_read(path, pem, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "empty"));
    unlink(path);
}

/* No new pair is made beside files that cannot be reached. */
static void files_that_cannot_be_reached_are_not_missing(void **state)
{
    char kept[2][96];
    sj_error error = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(kept[i], sizeof(kept[i]), "%s.kept", files[1 + i]);
        assert_int_equal(rename(files[1 + i], kept[i]), 0);
        assert_int_equal(symlink(strrchr(files[1 + i], '/') + 1, files[1 + i]), 0);
    }
    assert_int_equal(load(&error), SJ_EIO);
    assert_non_null(strstr(error.text, "cannot read"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rename(kept[i], files[1 + i]), 0);
    }
    assert_int_equal(load(&error), SJ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_other_users_can_access_are_refused),
        cmocka_unit_test(files_of_another_user_are_refused),
        cmocka_unit_test(a_file_that_cannot_be_read_is_not_empty),
        cmocka_unit_test(files_that_cannot_be_reached_are_not_missing),
    };
    return cmocka_run_group_tests(tests, make, remove_all);
}
