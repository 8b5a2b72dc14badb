/* A killed collector leaves its log. If the database is overwritten then, the next collector
 * renames the log and writes nothing of it into the file. A log that belongs to the file is always
 * read. */
#include "collector-server/store/foreign_log.h"

#include "collector-server/store/database.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 1000, BATCHES = 14, SOME_BATCHES = 3 };

/* A database as a killed collector left it, and what overwrites it. */
typedef struct left_case {
    lab_file *lab;
    lab_file left;
    char older[96]; /* an older copy of the file, made with cp */
    char log_name[96];
    char aside[96];
} left_case;

static const char sums_sql[] = "SELECT count(*), coalesce(sum(stored_calls), 0) FROM sessions";

static uint8_t *read_all(const char *path, size_t *bytes)
{
    struct stat about;
    const int file = open(path, O_RDONLY);
    *bytes = 0;
    if (file < 0) {
        return NULL;
    }
    assert_int_equal(fstat(file, &about), 0);
    uint8_t *content = malloc((size_t)about.st_size + 1);
    assert_int_equal(read(file, content, (size_t)about.st_size), about.st_size);
    close(file);
    *bytes = (size_t)about.st_size;
    return content;
}

static void write_all(const char *path, const void *content, size_t bytes)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, content, bytes), bytes);
    close(file);
}

/* Copies a file as `cp` does; a missing one stays missing. */
static void copy_file(const char *from, const char *to, const char *end)
{
    char from_name[128];
    char to_name[128];
    size_t bytes = 0;
    snprintf(from_name, sizeof(from_name), "%s%s", from, end);
    snprintf(to_name, sizeof(to_name), "%s%s", to, end);
    uint8_t *content = read_all(from_name, &bytes);
    if (content != NULL) {
        write_all(to_name, content, bytes);
    }
    free(content);
}

/* SQLite holds locks on the files of a store, which closing them here would release. So a child
 * process copies them. */
static void copy_elsewhere(const char *from, const char *to, const char *const *ends, size_t count)
{
    int wait_status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < count; ++i) {
            copy_file(from, to, ends[i]);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
}

static void copy_of_killed(const char *from, const char *to)
{
    static const char *const ends[] = {"", "-wal", SJ_LOG_BASE_END};
    lab_file_remove(to);
    copy_elsewhere(from, to, ends, sizeof(ends) / sizeof(ends[0]));
}

static void overwrite_elsewhere(const char *from, const char *to)
{
    static const char *const end = "";
    copy_elsewhere(from, to, &end, 1);
}

static void store_block(lab_file *lab)
{
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
}

static void checkpoint(const lab_file *lab)
{
    lab_file_run(lab, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* Stores blocks, copies the file, stores more, and leaves files as after a kill. */
static void make_case(void **state, left_case *made)
{
    *made = (left_case){.lab = *state};
    snprintf(made->left.path, sizeof(made->left.path), "%.40s.left", made->lab->path);
    snprintf(made->older, sizeof(made->older), "%s.older", made->lab->path);
    snprintf(made->log_name, sizeof(made->log_name), "%s-wal", made->left.path);
    snprintf(made->aside, sizeof(made->aside), "%s-wal.foreign", made->left.path);
    unlink(made->aside);
    lab_file_put_metadata(made->lab);
    store_block(made->lab);
    checkpoint(made->lab);
    copy_of_killed(made->lab->path, made->older);
    for (int i = 0; i < SOME_BATCHES; ++i) {
        store_block(made->lab);
    }
    checkpoint(made->lab);
    store_block(made->lab);
    copy_of_killed(made->lab->path, made->left.path);
}

static void end_case(left_case *made)
{
    sj_store_close(made->left.store);
    lab_file_remove(made->left.path);
    lab_file_remove(made->older);
    unlink(made->aside);
}

/* Expects that the log is renamed, and that the file is not changed. */
static void expect_aside(left_case *made, const char *why)
{
    size_t before_bytes = 0;
    size_t after_bytes = 0;
    size_t log_bytes = 0;
    size_t aside_bytes = 0;
    uint8_t *before = read_all(made->left.path, &before_bytes);
    uint8_t *log = read_all(made->log_name, &log_bytes);
    if (sj_foreign_log_check(made->left.path, &made->left.error) != SJ_ECORRUPT) {
        fail_msg("%s: a reader would read the log", why);
    }
    assert_int_equal(sj_foreign_log_set_aside(made->left.path, &made->left.error), SJ_OK);
    uint8_t *after = read_all(made->left.path, &after_bytes);
    uint8_t *aside = read_all(made->aside, &aside_bytes);
    if (access(made->log_name, F_OK) == 0 || aside == NULL || aside_bytes != log_bytes ||
        memcmp(aside, log, log_bytes) != 0) {
        fail_msg("%s: the log was not kept aside", why);
    }
    assert_int_equal(before_bytes, after_bytes);
    assert_memory_equal(before, after, after_bytes);
    free(before);
    free(after);
    free(log);
    free(aside);
}

/* Older copies overwrite two databases, one after the other. Both logs are kept. */
static void an_older_copy_is_opened_as_it_was_copied(void **state)
{
    left_case made;
    char second[112];
    make_case(state, &made);
    copy_file(made.older, made.left.path, "");
    expect_aside(&made, "an older copy");
    lab_file_open(&made.left, 0, 0);
    lab_file_expect(&made.left, sums_sql, "1|500|\n");
    sj_store_close(made.left.store);
    made.left.store = NULL;
    copy_of_killed(made.lab->path, made.left.path);
    copy_file(made.older, made.left.path, "");
    lab_file_open(&made.left, 0, 0);
    lab_file_expect(&made.left, sums_sql, "1|500|\n");
    snprintf(second, sizeof(second), "%s-2", made.aside);
    assert_int_equal(unlink(second), 0);
    end_case(&made);
}

/* The log begins at the state that the copy has, so the log belongs to the copy, too. */
static void a_copy_of_the_state_that_the_log_began_with_is_its_own(void **state)
{
    left_case made;
    make_case(state, &made);
    checkpoint(made.lab);
    copy_of_killed(made.lab->path, made.older);
    store_block(made.lab);
    copy_of_killed(made.lab->path, made.left.path);
    copy_file(made.older, made.left.path, "");
    assert_false(sj_foreign_log_exists(made.left.path));
    lab_file_open(&made.left, 0, 0);
    char *expected = lab_file_ask(made.lab, sums_sql);
    lab_file_expect(&made.left, sums_sql, expected);
    sqlite3_free(expected);
    end_case(&made);
}

static void a_truncated_file_keeps_its_log(void **state)
{
    left_case made;
    make_case(state, &made);
    assert_int_equal(truncate(made.left.path, 0), 0);
    expect_aside(&made, "an empty file");
    copy_of_killed(made.lab->path, made.left.path);
    unlink(made.aside);
    assert_int_equal(truncate(made.left.path, 3 * SJ_DATABASE_PAGE_BYTES), 0);
    expect_aside(&made, "a shorter file");
    end_case(&made);
}

/* The note beside the log is missing, too, as it is for the log of another program. */
static void a_file_of_another_program_is_not_changed(void **state)
{
    static const char text[] = "This is a letter, and a long one: it has more than one hundred "
                               "bytes, so that all of what would be a header is here.\n";
    static const char *const others[] = {
        "PRAGMA journal_mode=DELETE; CREATE TABLE letters (text)",
        "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; CREATE TABLE letters (text)",
        "PRAGMA page_size=16384; PRAGMA application_id=77; PRAGMA journal_mode=WAL; CREATE TABLE"
        " letters (text)"};
    left_case made;
    char base[96];
    make_case(state, &made);
    snprintf(base, sizeof(base), "%s" SJ_LOG_BASE_END, made.left.path);
    assert_int_equal(unlink(base), 0);
    write_all(made.left.path, text, sizeof(text));
    expect_aside(&made, "a text");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        lab_file other = {.path = ""};
        snprintf(other.path, sizeof(other.path), "%.50s.other", made.lab->path);
        lab_file_remove(other.path);
        lab_file_run(&other, others[i]);
        copy_of_killed(made.lab->path, made.left.path);
        unlink(base);
        unlink(made.aside);
        copy_file(other.path, made.left.path, "");
        expect_aside(&made, others[i]);
        lab_file_remove(other.path);
    }
    end_case(&made);
}

/* A file that a collector uses is not judged, whatever was written over it. */
static void the_log_of_a_running_collector_stays(void **state)
{
    left_case made;
    make_case(state, &made);
    lab_file_open(&made.left, 0, 0);
    frame_maker_init(&made.left.maker, 1);
    lab_file_begin(&made.left);
    lab_file_put(&made.left, frame_maker_mark(&made.left.maker, 1));
    lab_file_commit(&made.left);
    overwrite_elsewhere(made.older, made.left.path);
    assert_false(sj_foreign_log_exists(made.left.path));
    assert_int_equal(sj_foreign_log_set_aside(made.left.path, &made.left.error), SJ_OK);
    assert_int_equal(access(made.log_name, F_OK), 0);
    sj_store_close(made.left.store);
    made.left.store = NULL;
    assert_true(sj_foreign_log_exists(made.left.path));
    frame_maker_deinit(&made.left.maker);
    end_case(&made);
}

/* Another connection makes each kind of checkpoint and of change, and the collector is killed after
 * each batch. The log belongs to its file each time. */
static void the_log_of_a_killed_collector_is_read(void **state)
{
    static const char *const others[] = {"SELECT 1",
                                         "PRAGMA wal_checkpoint(PASSIVE)",
                                         "PRAGMA wal_checkpoint(FULL)",
                                         "UPDATE sessions SET name = name || 'x'",
                                         "PRAGMA wal_checkpoint(RESTART)",
                                         "PRAGMA incremental_vacuum(2)",
                                         "CREATE TABLE IF NOT EXISTS t AS SELECT zeroblob(90000)",
                                         "PRAGMA wal_checkpoint(TRUNCATE)",
                                         "DROP TABLE IF EXISTS t; VACUUM",
                                         "ANALYZE",
                                         "PRAGMA user_version=1"};
    lab_file *lab = *state;
    lab_file left = {.path = ""};
    int logs = 0;
    snprintf(left.path, sizeof(left.path), "%.40s.left", lab->path);
    lab_file_put_metadata(lab);
    for (int i = 0; i < BATCHES; i++) {
        struct stat about;
        char log_name[96];
        store_block(lab);
        lab_file_run(lab, others[(size_t)i % (sizeof(others) / sizeof(others[0]))]);
        copy_of_killed(lab->path, left.path);
        snprintf(log_name, sizeof(log_name), "%s-wal", left.path);
        logs += stat(log_name, &about) == 0 && about.st_size > 0;
        if (sj_foreign_log_exists(left.path)) {
            fail_msg("round %d: the log behind \"%s\" counts as foreign", i,
                     others[(size_t)i % (sizeof(others) / sizeof(others[0]))]);
        }
        char *expected = lab_file_ask(lab, sums_sql);
        lab_file_open(&left, 0, 0);
        lab_file_expect(&left, sums_sql, expected);
        sqlite3_free(expected);
        sj_store_close(left.store);
    }
    assert_true(logs > BATCHES / 2);
    lab_file_remove(left.path);
}

/* No file is left behind when the last connection closes. */
static void the_note_is_removed_with_the_log(void **state)
{
    lab_file *lab = *state;
    char base[96];
    snprintf(base, sizeof(base), "%s" SJ_LOG_BASE_END, lab->path);
    lab_file_put_metadata(lab);
    assert_int_equal(access(base, F_OK), 0);
    sj_store_close(lab->store);
    assert_int_not_equal(access(base, F_OK), 0);
    lab_file_open(lab, 0, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_file_set_up, lab_file_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_older_copy_is_opened_as_it_was_copied),
        CASE(a_copy_of_the_state_that_the_log_began_with_is_its_own),
        CASE(a_truncated_file_keeps_its_log),
        CASE(a_file_of_another_program_is_not_changed),
        CASE(the_log_of_a_running_collector_stays),
        CASE(the_log_of_a_killed_collector_is_read),
        CASE(the_note_is_removed_with_the_log),
    };
    return cmocka_run_group_tests_name("store.foreign_log", tests, NULL, NULL);
}
