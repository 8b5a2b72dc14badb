/* Another program writes to a database while the store has it open, without SQLite. The store
 * acknowledges nothing. If the database is damaged, devices keep their frames. A child process
 * writes, because closing the file in this process would release SQLite's locks. */
#include "collector-server/store/file_watch.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 2000, PIECE_BYTES = 1 << 16, BATCHES = 40, GROWN_BYTES = 20000 };

typedef struct writing {
    const char *from; /* NULL: zeros */
    const char *to;
    int flags;
    off_t at;
    size_t bytes; /* at most this many */
} writing;

static int write_file(const writing *todo)
{
    static uint8_t piece[PIECE_BYTES];
    const int to = open(todo->to, O_WRONLY | O_CREAT | todo->flags, 0600);
    const int from = todo->from != NULL ? open(todo->from, O_RDONLY) : -1;
    size_t left = todo->bytes;
    off_t at = todo->at;
    while (to >= 0 && left > 0) {
        const size_t most = left < sizeof(piece) ? left : sizeof(piece);
        const ssize_t got = from >= 0 ? read(from, piece, most) : (ssize_t)most;
        if (got <= 0) {
            break;
        }
        if (pwrite(to, piece, (size_t)got, at) != got) {
            return 1;
        }
        at += got;
        left -= (size_t)got;
    }
    return to < 0 || (todo->from != NULL && from < 0);
}

static void write_elsewhere(writing todo)
{
    int wait_status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(write_file(&todo));
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
}

static void copy_over(const char *from, const char *to)
{
    write_elsewhere((writing){.from = from, .to = to, .flags = O_TRUNC, .bytes = SIZE_MAX});
}

static uint8_t *read_all(const char *path, size_t *bytes)
{
    struct stat about;
    const int file = open(path, O_RDONLY);
    assert_true(file >= 0 && fstat(file, &about) == 0);
    uint8_t *read_bytes = malloc((size_t)about.st_size);
    assert_int_equal(read(file, read_bytes, (size_t)about.st_size), about.st_size);
    close(file);
    *bytes = (size_t)about.st_size;
    return read_bytes;
}

static void expect_same_bytes(const char *a, const char *b)
{
    size_t a_bytes = 0;
    size_t b_bytes = 0;
    uint8_t *of_a = read_all(a, &a_bytes);
    uint8_t *of_b = read_all(b, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(of_a, of_b, a_bytes);
    free(of_a);
    free(of_b);
}

static void store_block(lab_file *lab)
{
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
}

/* Writes the whole log into the file, through another connection. */
static void checkpoint(const lab_file *lab)
{
    lab_file_run(lab, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void expect_overwritten(lab_file *lab)
{
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_EIO);
    assert_non_null(strstr(lab->error.text, "overwritten"));
    assert_int_equal(sj_store_begin(lab->store, &lab->error), SJ_EIO);
}

static void a_truncated_file_accepts_no_commit(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    store_block(lab);
    checkpoint(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    write_elsewhere((writing){.to = lab->path, .flags = O_TRUNC});
    assert_int_not_equal(sj_store_commit(lab->store, &lab->error), SJ_OK);
    expect_overwritten(lab);
}

/* Copies a copy over the file with `cp`. Then the copy's log and the next checkpoint may change the
 * file. */
static void an_older_copy_over_the_file_accepts_no_commit(void **state)
{
    lab_file *lab = *state;
    char copy[96];
    snprintf(copy, sizeof(copy), "%s.copy", lab->path);
    lab_file_put_metadata(lab);
    checkpoint(lab);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    copy_over(lab->path, copy);
    for (int i = 0; i < 4; i++) {
        store_block(lab);
    }
    checkpoint(lab);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    copy_over(copy, lab->path);
    expect_overwritten(lab);
    unlink(copy);
}

static void another_database_over_the_file_accepts_no_commit(void **state)
{
    lab_file *lab = *state;
    lab_file other = {.error = {0}};
    snprintf(other.path, sizeof(other.path), "%.50s.other", lab->path);
    lab_file_remove(other.path);
    lab_file_open(&other, 0, 0);
    frame_maker_init(&other.maker, 2);
    lab_file_put_metadata(&other);
    store_block(&other);
    sj_store_close(other.store);
    lab_file_put_metadata(lab);
    checkpoint(lab);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    copy_over(other.path, lab->path);
    expect_overwritten(lab);
    frame_maker_deinit(&other.maker);
    lab_file_remove(other.path);
}

/* Header and size are the same, so the first bytes alone do not suffice after a checkpoint. */
static void an_older_copy_is_noticed_after_a_checkpoint(void **state)
{
    lab_file *lab = *state;
    sj_error error = {0};
    sj_file_watch watch = {0};
    sqlite3 *database = NULL;
    lab_file_put_metadata(lab);
    checkpoint(lab);
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    assert_int_equal(sj_file_watch_check(&watch, database, lab->path, &error), SJ_OK);
    assert_true(watch.is_known);
    watch.log[2]++; /* a checkpoint does this */
    assert_int_equal(sj_file_watch_check(&watch, database, lab->path, &error), SJ_OK);
    watch.log[2]++;
    watch.header[27]++; /* the overwritten file was newer */
    assert_int_equal(sj_file_watch_check(&watch, database, lab->path, &error), SJ_EIO);
    assert_int_equal(sj_file_watch_check(&watch, database, lab->path, &error), SJ_EIO);
    sqlite3_close(database);
}

/* Batches, checkpoints of this connection and of others, and a restarted log are normal. */
static void sqlites_own_writing_is_no_overwriting(void **state)
{
    lab_file *lab = *state;
    static const char *const others[] = {"PRAGMA wal_checkpoint(PASSIVE)",
                                         "PRAGMA wal_checkpoint(FULL)",
                                         "PRAGMA wal_checkpoint(RESTART)",
                                         "PRAGMA wal_checkpoint(TRUNCATE)",
                                         "PRAGMA incremental_vacuum(2)",
                                         "DELETE FROM marks; VACUUM",
                                         "ANALYZE"};
    lab_file_put_metadata(lab);
    for (int i = 0; i < BATCHES; i++) {
        store_block(lab);
        lab_file_run(lab, others[(size_t)i % (sizeof(others) / sizeof(others[0]))]);
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    }
    lab_file_expect(lab, "SELECT stored_blocks FROM sessions", "40|\n");
}

/* Lets files of this process grow to `bytes`, as on a disk that is full at that size. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Tries a checkpoint with a file that cannot grow beyond `bytes`. Returns the file's size. */
static off_t checkpoint_in_part(const lab_file *lab, sqlite3 *other, rlim_t bytes)
{
    struct stat about;
    limit_files(bytes);
    const int result =
        sqlite3_wal_checkpoint_v2(other, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    limit_files(RLIM_INFINITY);
    assert_int_not_equal(result, SQLITE_OK);
    assert_int_equal(stat(lab->path, &about), 0);
    return about.st_size;
}

/* Each attempt leaves more pages in the file. The log's index stays as the first attempt left
 * it. */
static void checkpoints_that_fail_are_no_overwriting(void **state)
{
    lab_file *lab = *state;
    sqlite3 *other = NULL;
    signal(SIGXFSZ, SIG_IGN);
    lab_file_put_metadata(lab);
    checkpoint(lab);
    struct stat about;
    assert_int_equal(stat(lab->path, &about), 0);
    assert_int_equal(sqlite3_open(lab->path, &other), SQLITE_OK);
    lab_file_run(lab, "CREATE TABLE filler AS SELECT randomblob(200000) AS bytes");
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    assert_int_equal(sqlite3_exec(other, "SELECT 1 FROM filler", NULL, NULL, NULL), SQLITE_OK);
    off_t before = about.st_size;
    for (int i = 1; i <= 2; i++) {
        const off_t after =
            checkpoint_in_part(lab, other, (rlim_t)(about.st_size + i * GROWN_BYTES));
        assert_true(after > before);
        before = after;
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    }
    sqlite3_close(other);
    store_block(lab);
    write_elsewhere((writing){.to = lab->path, .flags = O_TRUNC});
    expect_overwritten(lab);
}

/* The store's log belongs to the file that was there before. */
static void closing_leaves_a_file_that_was_overwritten_alone(void **state)
{
    lab_file *lab = *state;
    char copy[96];
    snprintf(copy, sizeof(copy), "%s.copy", lab->path);
    lab_file_put_metadata(lab);
    checkpoint(lab);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    copy_over(lab->path, copy);
    store_block(lab);
    checkpoint(lab);
    store_block(lab);
    copy_over(copy, lab->path);
    sj_store_close(lab->store);
    lab->store = NULL;
    expect_same_bytes(copy, lab->path);
    unlink(copy);
    lab_file_remove(lab->path);
    lab_file_open(lab, 0, 0);
}

static void a_database_without_a_log_is_left_alone(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_file_watch watch = {0};
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sj_file_watch_check(&watch, database, ":memory:", &error), SJ_OK);
    assert_false(watch.is_known);
    sqlite3_close(database);
}

/* SQLite finds an invalid page. The frame is sound, so it is not refused for good. */
static void a_damaged_database_refuses_the_batch_and_no_frame(void **state)
{
    lab_file *lab = *state;
    sj_frame_view view;
    bool duplicate = false;
    char copy[96];
    snprintf(copy, sizeof(copy), "%s.copy", lab->path);
    lab_file_put_metadata(lab);
    sj_store_close(lab->store);
    copy_over(lab->path, copy);
    lab_file_open(lab, 0, 0);
    char *root = lab_file_ask(lab, "SELECT (rootpage - 1) * (SELECT page_size FROM"
                                   " pragma_page_size) FROM sqlite_schema WHERE name = 'marks'");
    write_elsewhere((writing){.to = lab->path, .at = strtol(root, NULL, 10), .bytes = 4096});
    sqlite3_free(root);
    lab_file_begin(lab);
    assert_int_equal(sj_frame_read(frame_maker_mark(&lab->maker, 1), &view), SJ_OK);
    assert_int_equal(sj_store_apply(lab->store, &view, NULL, &duplicate, &lab->error), SJ_EIO);
    assert_non_null(strstr(lab->error.text, "is damaged"));
    sj_store_rollback(lab->store);
    sj_store_close(lab->store);
    copy_over(copy, lab->path);
    lab_file_open(lab, 0, 0);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_mark(&lab->maker, 1));
    lab_file_commit(lab);
    unlink(copy);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_file_set_up, lab_file_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_truncated_file_accepts_no_commit),
        CASE(an_older_copy_over_the_file_accepts_no_commit),
        CASE(another_database_over_the_file_accepts_no_commit),
        CASE(an_older_copy_is_noticed_after_a_checkpoint),
        CASE(sqlites_own_writing_is_no_overwriting),
        CASE(checkpoints_that_fail_are_no_overwriting),
        CASE(closing_leaves_a_file_that_was_overwritten_alone),
        CASE(a_damaged_database_refuses_the_batch_and_no_frame),
        cmocka_unit_test(a_database_without_a_log_is_left_alone),
    };
    return cmocka_run_group_tests_name("store.file_watch", tests, NULL, NULL);
}
