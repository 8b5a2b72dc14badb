/* A folder for files of blocks: the files are complete, are read exactly, and cannot be links or
 * other kinds of files. */
#include "collector-server/store/block_place.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_S = 30 };

static const sj_block_place_kind *const kind = &sj_block_place_folder;
static const sj_slice half = {(const uint8_t *)"blocks", 6};
static char folder[64];
static sj_error error;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/sj_place_XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void make_file(const char *name)
{
    sj_place_file file;
    assert_int_equal(kind->prepare(folder, &error), SJ_OK);
    assert_int_equal(kind->create(folder, name, &file, &error), SJ_OK);
    assert_int_equal(kind->append(&file, half, &error), SJ_OK);
    assert_int_equal(kind->append(&file, half, &error), SJ_OK);
    assert_int_equal(kind->keep(folder, &file, &error), SJ_OK);
    kind->close(&file);
}

/* Reading a file that was cut fails. The alarm ends a read that never ends. */
static void bytes_are_read_exactly_or_not_at_all(void **state)
{
    sj_place_file file;
    uint8_t bytes[16] = {0};
    (void)state;
    make_file("1.blocks");
    assert_int_equal(kind->open(folder, "1.blocks", &file, &error), SJ_OK);
    assert_int_equal(kind->read(&file, 3, bytes, 9, &error), SJ_OK);
    assert_memory_equal(bytes, "cksblocks", 9);
    assert_int_equal(kind->read(&file, 12, bytes, 0, &error), SJ_OK);
    alarm(PATIENCE_S);
    assert_int_equal(kind->read(&file, 3, bytes, 10, &error), SJ_EIO);
    assert_int_equal(kind->read(&file, 12, bytes, 1, &error), SJ_EIO);
    alarm(0);
    kind->close(&file);
    kind->close(&file);
}

static void only_files_of_blocks_are_opened(void **state)
{
    static const char *const names[] = {
        "", "blocks", "1.blocks.x", "../1.blocks", "none.blocks", "link.blocks", "folder.blocks"};
    char path[96];
    sj_place_file file;
    (void)state;
    make_file("1.blocks");
    snprintf(path, sizeof(path), "%s/link.blocks", folder);
    assert_int_equal(symlink("1.blocks", path), 0);
    snprintf(path, sizeof(path), "%s/folder.blocks", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(kind->open(folder, names[i], &file, &error), SJ_EIO);
    }
    assert_int_equal(kind->create(folder, "1.blocks", &file, &error), SJ_EIO); /* the file exists */
    assert_int_equal(kind->create(folder, "a/1.blocks", &file, &error), SJ_EINVAL);
    assert_int_equal(kind->prepare("relative", &error), SJ_EINVAL);
}

/* A folder without its mark counts as away: nothing is deleted, and the removal is tried again. */
static void files_are_removed_where_the_place_is(void **state)
{
    char path[96];
    sj_place_file file;
    (void)state;
    make_file("1.blocks");
    assert_int_equal(kind->remove(folder, "other"), SJ_EAGAIN);
    snprintf(path, sizeof(path), "%s/sojourn-blocks", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kind->remove(folder, "1.blocks"), SJ_EAGAIN);
    assert_int_equal(kind->open(folder, "1.blocks", &file, &error), SJ_EIO);
    assert_int_equal(kind->prepare(folder, &error), SJ_OK);
    assert_int_equal(kind->create(folder, "2.blocks", &file, &error), SJ_OK);
    assert_int_equal(kind->remove(folder, "2.blocks"), SJ_EAGAIN); /* the file is in use */
    kind->close(&file);
    assert_int_equal(kind->remove(folder, "2.blocks"), SJ_OK);
    assert_int_equal(kind->remove(folder, "1.blocks"), SJ_OK);
    assert_int_equal(kind->remove(folder, "1.blocks"), SJ_OK); /* the file is gone already */
    assert_ptr_equal(sj_block_place_find("folder"), kind);
    assert_null(sj_block_place_find("tape"));
    assert_null(sj_block_place_find(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_read_exactly_or_not_at_all),
        TEST(only_files_of_blocks_are_opened),
        TEST(files_are_removed_where_the_place_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
