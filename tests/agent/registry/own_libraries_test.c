#include "agent/registry/own_libraries.h"

#include "tests/support/check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"

typedef struct file {
    const char *name;
    const char *text;
} file;

/* A database of dpkg. Its lists name files with and without /usr, as Debian's do. */
static const file files[] = {
    {"status",
     "Package: imagemagick-6.q16\nStatus: install ok installed\nSource: imagemagick (8:6.9)\n"
     "Version: 1\n\n"
     "Package: libmagickcore-6\nSource: imagemagick\nVersion: 1\n\n"
     "Package: libz\nSource: zlib (1)\nDescription: the text names a source\n"
     " Source: imagemagick\n\n"
     "Package: mount\nVersion: 1\n\n"
     "Package: java\nSource: jdk\nVersion: 1\n"},
    {"info/imagemagick-6.q16.list", "/.\n/usr/bin\n/usr/bin/convert-im6.q16\n"},
    {"info/libmagickcore-6:amd64.list",
     "/.\n" LIBRARIES "libMagickCore-6.so.6\n" LIBRARIES "ImageMagick/png.so\n"},
    {"info/libz:amd64.list", "/.\n" LIBRARIES "libz.so.1\n/usr/share/doc/libz\n"},
    {"info/mount.list", "/.\n/bin/mount\n/lib/x86_64-linux-gnu/libfs.so.1\n"},
    {"info/java.list",
     "/.\n/usr/bin/java\n/usr/lib/jvm/lib/libjvm.so\n/usr/lib/jvm/lib/libzip.so\n"},
    {"info/mount.md5sums", "/usr/bin/convert-im6.q16\n"},
};

static char folder[] = "/tmp/sojourn-own-XXXXXX";

static void path_of(const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static int make_database(void **state)
{
    char path[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(folder));
    path_of("info", path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        path_of(files[i].name, path);
        FILE *made = fopen(path, "w");
        assert_non_null(made);
        fputs(files[i].text, made);
        assert_int_equal(fclose(made), 0);
    }
    return 0;
}

static int remove_database(void **state)
{
    char path[PATH_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        path_of(files[i].name, path);
        (void)unlink(path);
    }
    path_of("info", path);
    return rmdir(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static bool has(const char *program, const char *library)
{
    sj_own_libraries libraries = {.database = folder};
    const bool first = sj_own_libraries_has(&libraries, program, library);
    assert_int_equal(sj_own_libraries_has(&libraries, program, library), first);
    assert_true(libraries.count <= 1);
    sj_own_libraries_deinit(&libraries);
    return first;
}

static void libraries_of_the_programs_source_package_are_its_own(void **state)
{
    static const char convert[] = "/usr/bin/convert-im6.q16";
    (void)state;
    assert_true(has(convert, LIBRARIES "libMagickCore-6.so.6"));
    assert_true(has(convert, LIBRARIES "ImageMagick/png.so"));
    assert_false(has(convert, LIBRARIES "libMagickCore-6.so"));
    assert_false(has(convert, LIBRARIES "libz.so.1"));
    assert_false(has(convert, LIBRARIES "libfs.so.1"));
    assert_true(has("/usr/bin/mount", LIBRARIES "libfs.so.1"));
    assert_true(has("/bin/mount", LIBRARIES "libfs.so.1"));
    assert_false(has("/usr/local/bin/mount", LIBRARIES "libfs.so.1"));
    assert_false(has("/usr/bin/unknown", LIBRARIES "libz.so.1"));
    assert_false(has("", LIBRARIES "libz.so.1"));
}

static void libraries_of_a_runtimes_package_are_not(void **state)
{
    (void)state;
    assert_false(has("/usr/bin/java", "/usr/lib/jvm/lib/libjvm.so"));
    assert_false(has("/usr/bin/java", "/usr/lib/jvm/lib/libzip.so"));
    assert_false(has("/usr/lib/jvm/bin/other", "/usr/lib/jvm/lib/libzip.so"));
}

static void libraries_with_the_programs_name_are_its_own(void **state)
{
    (void)state;
    assert_true(has("/usr/bin/jq", LIBRARIES "libjq.so.1"));
    assert_true(has("/usr/bin/python3.11", LIBRARIES "libpython3.11.so.1.0"));
    assert_true(has("/usr/bin/sqlite3", LIBRARIES "libsqlite3.so.0"));
    assert_true(has("/usr/bin/ruby3.1", LIBRARIES "libruby-3.1.so.3.1"));
    assert_false(has("/usr/bin/jq", LIBRARIES "libjqx.so.1"));
    assert_false(has("/usr/bin/jq", LIBRARIES "libonig.so.5"));
    assert_false(has("/usr/bin/z", LIBRARIES "libz.so.1"));
    assert_false(has("/usr/bin/22", LIBRARIES "lib22.so"));
}

static void libraries_in_the_programs_folder_are_its_own(void **state)
{
    (void)state;
    assert_true(has("/usr/lib/R/bin/exec/R", "/usr/lib/R/lib/libRblas.so"));
    assert_true(has(LIBRARIES "guile/bin/guile", LIBRARIES "guile/ext/x.so"));
    assert_false(has("/usr/lib/R/bin/exec/R", LIBRARIES "libblas.so.3"));
    assert_false(has(LIBRARIES "tool", LIBRARIES "libblas.so.3"));
    assert_false(has("/usr/lib/tool", "/usr/lib/libblas.so.3"));
}

static void without_a_database_names_and_folders_decide(void **state)
{
    sj_own_libraries libraries = {0};
    (void)state;
    assert_true(sj_own_libraries_has(&libraries, "/usr/bin/jq", LIBRARIES "libjq.so.1"));
    assert_false(sj_own_libraries_has(&libraries, "/usr/bin/mount", LIBRARIES "libfs.so.1"));
    libraries.database = "/nowhere";
    assert_false(sj_own_libraries_has(&libraries, "/bin/mount", LIBRARIES "libfs.so.1"));
    assert_int_equal(libraries.count, 3);
    sj_own_libraries_deinit(&libraries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_of_the_programs_source_package_are_its_own),
        cmocka_unit_test(libraries_of_a_runtimes_package_are_not),
        cmocka_unit_test(libraries_with_the_programs_name_are_its_own),
        cmocka_unit_test(libraries_in_the_programs_folder_are_its_own),
        cmocka_unit_test(without_a_database_names_and_folders_decide),
    };
    return cmocka_run_group_tests(tests, make_database, remove_database);
}
