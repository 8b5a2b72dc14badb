/* Backups are from one moment, complete while others write, and overwrite nothing. A damaged backup
 * is not restored. */
#include "collector-server/maintenance/database_copy.h"

#include "collector-server/maintenance/block_move.h"
#include "proto/base/progress.h"
#include "tests/collector-server/store/lab_file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { EVENTS = 2000, BLOCKS = 3, MOST_WRITES = 50 };

static const char lost_calls_sql[] =
    "UPDATE sessions SET sent_calls = sent_calls + 5, missing_calls = 5,"
    " lost_calls = lost_calls + 5;"
    "INSERT INTO gaps (session_id, reason, calls, events, start_ns, end_ns)"
    " VALUES (1, 'not_stored', 5, 5, 0, 1)";

typedef struct copy_user {
    const char *path; /* path of the copy */
    sqlite3 *database;
} copy_user;

static lab_file *written; /* the database that is written to during a copy */
static int writes;
static char found[2048];

static int set_up(void **state)
{
    lab_file_set_up(state);
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    }
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_run(lab, "UPDATE sessions SET name = 'before'");
    written = NULL;
    writes = 0;
    found[0] = '\0';
    return 0;
}

static void name_beside(const lab_file *lab, const char *end, char path[128])
{
    snprintf(path, 128, "%s.%s", lab->path, end);
}

static unsigned count_files(const char *path)
{
    char pattern[160];
    glob_t all;
    snprintf(pattern, sizeof(pattern), "%s*", path);
    const unsigned count = glob(pattern, 0, NULL, &all) == 0 ? (unsigned)all.gl_pathc : 0;
    globfree(&all);
    return count;
}

static char *read_whole(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    char *bytes = malloc((size_t)about.st_size);
    FILE *file = fopen(path, "rb");
    assert_true(bytes != NULL && file != NULL);
    assert_int_equal(fread(bytes, 1, (size_t)about.st_size, file), about.st_size);
    fclose(file);
    return bytes;
}

static lab_file name_lab(const char *path)
{
    lab_file other = {0};
    assert_true(strlen(path) < sizeof(other.path));
    memcpy(other.path, path, strlen(path));
    return other;
}

static char *ask(const char *path, const char *sql)
{
    const lab_file other = name_lab(path);
    return lab_file_ask(&other, sql);
}

static void expect(const char *path, const char *sql, const char *reply)
{
    char *text = ask(path, sql);
    assert_string_equal(text, reply);
    sqlite3_free(text);
}

static void note(void *context, const sj_finding *finding)
{
    (void)context;
    snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n", finding->what);
}

static sj_status restore(const char *from, const char *to, bool accepts_damage)
{
    sj_copied copied;
    sj_error error = {0};
    return sj_database_restore(from, to, accepts_damage, note, NULL, &copied, &error);
}

/* Writes between two steps of the copy. After some time a copy that restarts must end, too. */
static void write_meanwhile(const sj_progress *progress)
{
    (void)progress;
    if (writes < MOST_WRITES) {
        writes++;
        lab_file_run(written, "UPDATE sessions SET name = name || '+'");
    }
}

static void a_backup_is_as_of_its_beginning_while_others_write(void **state)
{
    lab_file *lab = *state;
    sj_copied copied;
    char path[128];
    name_beside(lab, "copy", path);
    lab_file_run(lab, "CREATE TABLE filler (bytes BLOB);"
                      "INSERT INTO filler VALUES (zeroblob(9000000)), (zeroblob(9000000))");
    written = lab;
    sj_progress_watch(write_meanwhile);
    assert_int_equal(sj_database_backup(lab->path, path, &copied, &lab->error), SJ_OK);
    sj_progress_watch(NULL);
    assert_true(writes > 2 && writes < MOST_WRITES);
    expect(path, "SELECT name FROM sessions", "before|\n");
    assert_int_equal(copied.sessions, 1);
    assert_int_equal(copied.moved_blocks, 0);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, copied.bytes);
    lab_file_remove(path);
    assert_int_equal(count_files(path), 0);
}

static void a_backup_overwrites_no_file(void **state)
{
    lab_file *lab = *state;
    char path[128];
    char log[160];
    sj_copied copied;
    name_beside(lab, "copy", path);
    snprintf(log, sizeof(log), "%s-wal", path);
    const char *const taken[] = {path, log};
    for (int i = 0; i < 2; ++i) {
        FILE *file = fopen(taken[i], "w");
        fputs("mine", file);
        fclose(file);
        assert_int_equal(sj_database_backup(lab->path, path, &copied, &lab->error), SJ_EEXIST);
        assert_non_null(strstr(lab->error.text, taken[i]));
        assert_int_equal(restore(lab->path, path, true), SJ_EEXIST);
        assert_int_equal(count_files(path), 1); /* no file of the attempt is left */
        struct stat about;
        assert_int_equal(stat(taken[i], &about), 0);
        assert_int_equal(about.st_size, 4);
        assert_int_equal(unlink(taken[i]), 0);
    }
}

/* As after `rm lab.db*` under a running collector, which would not see a new file of that name. */
static void the_name_of_a_deleted_file_in_use_is_refused(void **state)
{
    lab_file *lab = *state;
    char backup[128];
    char deleted[128];
    sj_copied copied;
    name_beside(lab, "backup", backup);
    name_beside(lab, "deleted", deleted);
    lab_file_remove(backup);
    assert_int_equal(sj_database_backup(lab->path, backup, &copied, &lab->error), SJ_OK);
    FILE *held = fopen(deleted, "w");
    assert_non_null(held);
    unlink(deleted);
    assert_int_equal(restore(backup, deleted, false), SJ_EAGAIN);
    assert_int_equal(sj_database_backup(lab->path, deleted, &copied, &lab->error), SJ_EAGAIN);
    assert_non_null(strstr(lab->error.text, "that was deleted or renamed"));
    assert_int_equal(count_files(deleted), 0);
    fclose(held);
    assert_int_equal(restore(backup, deleted, false), SJ_OK);
    lab_file_remove(deleted);
    lab_file_remove(backup);
}

/* As after `mv lab.db old.db` under a running collector. Its log keeps the name. */
static void the_name_of_a_renamed_database_in_use_is_refused(void **state)
{
    lab_file *lab = *state;
    char backup[128];
    char renamed[128];
    sj_copied copied;
    name_beside(lab, "backup", backup);
    name_beside(lab, "renamed", renamed);
    lab_file_remove(backup);
    assert_int_equal(sj_database_backup(lab->path, backup, &copied, &lab->error), SJ_OK);
    assert_int_equal(rename(lab->path, renamed), 0);
    assert_int_equal(restore(backup, lab->path, false), SJ_EAGAIN);
    assert_int_equal(sj_database_backup(backup, lab->path, &copied, &lab->error), SJ_EAGAIN);
    assert_non_null(strstr(lab->error.text, "that was deleted or renamed"));
    assert_int_equal(rename(renamed, lab->path), 0);
    lab_file_remove(backup);
}

static void files_that_are_not_a_database_are_refused(void **state)
{
    lab_file *lab = *state;
    char path[128];
    char other[128];
    sj_copied copied;
    name_beside(lab, "copy", path);
    name_beside(lab, "missing", other);
    assert_int_equal(sj_database_backup(other, path, &copied, &lab->error), SJ_ENOTFOUND);
    assert_int_equal(restore(other, path, true), SJ_ENOTFOUND);
    FILE *file = fopen(other, "w");
    fclose(file);
    assert_int_equal(sj_database_backup(other, path, &copied, &lab->error), SJ_ECORRUPT);
    assert_int_equal(restore("/etc/passwd", path, true), SJ_ECORRUPT);
    assert_int_equal(count_files(path), 0);
    assert_int_equal(unlink(other), 0);
}

static void a_backup_is_restored_when_it_is_sound(void **state)
{
    lab_file *lab = *state;
    char copy[128];
    char path[128];
    sj_copied copied;
    name_beside(lab, "copy", copy);
    name_beside(lab, "restored", path);
    assert_int_equal(sj_database_backup(lab->path, copy, &copied, &lab->error), SJ_OK);
    assert_int_equal(restore(copy, path, false), SJ_OK);
    assert_int_equal(count_files(copy), 1); /* the next backup may have this name once it is free */
    assert_int_equal(count_files(path), 1);
    assert_string_equal(found, "");
    char *sums = lab_file_ask(lab, lab_file_sums_sql);
    expect(path, lab_file_sums_sql, sums);
    sqlite3_free(sums);
    lab_file_remove(path);
    /* Calls that had been lost before do not count as damage of the backup. */
    lab_file_run(lab, lost_calls_sql);
    assert_int_equal(restore(lab->path, path, false), SJ_OK);
    assert_non_null(strstr(found, "5 calls"));
    lab_file_remove(path);
    lab_file_remove(copy);
}

static void move_blocks(const lab_file *lab, const char *folder)
{
    sqlite3 *database = NULL;
    sj_blocks_moved moved;
    sj_error error = {0};
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    assert_int_equal(sj_blocks_move(database, 1, folder, &moved, &error), SJ_OK);
    assert_true(moved.blocks >= BLOCKS);
    sqlite3_close(database);
}

static unsigned remove_files(const char *folder)
{
    char pattern[160];
    glob_t all;
    snprintf(pattern, sizeof(pattern), "%s/*", folder);
    const unsigned count = glob(pattern, 0, NULL, &all) == 0 ? (unsigned)all.gl_pathc : 0;
    for (unsigned i = 0; i < count; ++i) {
        assert_int_equal(unlink(all.gl_pathv[i]), 0);
    }
    globfree(&all);
    return count;
}

static void a_backup_has_the_blocks_that_were_moved(void **state)
{
    static const char bytes_sql[] = "SELECT block_id, storage, hex(data) FROM blocks ORDER BY 1";
    lab_file *lab = *state;
    char folder[] = "/tmp/database_copy_test.XXXXXX";
    char copy[128];
    char path[128];
    sj_copied copied;
    char *stored = lab_file_ask(lab, bytes_sql);
    assert_non_null(mkdtemp(folder));
    move_blocks(lab, folder);
    name_beside(lab, "copy", copy);
    name_beside(lab, "restored", path);
    assert_int_equal(sj_database_backup(lab->path, copy, &copied, &lab->error), SJ_OK);
    assert_true(copied.moved_blocks >= BLOCKS);
    assert_int_equal(copied.missing_blocks, 0);
    struct stat about;
    assert_int_equal(stat(copy, &about), 0);
    assert_int_equal(about.st_size, copied.bytes);
    assert_int_not_equal(remove_files(folder), 0); /* the copy needs none of these files */
    assert_int_equal(restore(copy, path, false), SJ_OK);
    assert_string_equal(found, "");
    expect(path, bytes_sql, stored);
    expect(path, "SELECT count(*) FROM block_files", "0|\n");
    sqlite3_free(stored);
    lab_file_remove(path);
    lab_file_remove(copy);
    /* Now the source's files are gone. */
    assert_int_equal(sj_database_backup(lab->path, copy, &copied, &lab->error), SJ_OK);
    assert_int_equal(copied.missing_blocks, copied.moved_blocks);
    assert_non_null(strstr(copied.why.text, folder));
    lab_file_remove(copy);
    assert_int_equal(rmdir(folder), 0);
}

/* Another program changes the copy while it is verified, and keeps its log from being written
 * back. */
static void change_copy(void *context, const sj_finding *finding)
{
    copy_user *user = context;
    char pattern[160];
    glob_t all;
    (void)finding;
    if (user->database != NULL) {
        return;
    }
    snprintf(pattern, sizeof(pattern), "%s.??????", user->path);
    assert_int_equal(glob(pattern, 0, NULL, &all), 0);
    assert_int_equal(sqlite3_open(all.gl_pathv[0], &user->database), SQLITE_OK);
    globfree(&all);
    assert_int_equal(sqlite3_exec(user->database,
                                  "UPDATE sessions SET name = 'verified'; BEGIN;"
                                  "SELECT count(*) FROM sessions",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
}

static void a_copy_without_its_log_gets_no_name(void **state)
{
    lab_file *lab = *state;
    char path[128];
    copy_user user = {.path = path};
    sj_copied copied;
    name_beside(lab, "restored", path);
    lab_file_run(lab, lost_calls_sql);
    assert_int_equal(
        sj_database_restore(lab->path, path, true, change_copy, &user, &copied, &lab->error),
        SJ_EAGAIN);
    assert_non_null(user.database);
    sqlite3_close(user.database);
    assert_non_null(strstr(lab->error.text, "the log of"));
    assert_int_equal(count_files(path), 0);
}

static sj_status restore_as_nobody(const char *from, const char *to)
{
    enum { UNPRIVILEGED_USER = 65534 };
    const uid_t user = geteuid();
    assert_int_equal(user == 0 ? seteuid(UNPRIVILEGED_USER) : 0, 0);
    const sj_status status = restore(from, to, false);
    assert_int_equal(seteuid(user), 0);
    return status;
}

/* Backups of older versions are marked as having a log. */
static void a_backup_in_a_read_only_folder_is_restored(void **state)
{
    lab_file *lab = *state;
    char folder[] = "/tmp/database_copy_test.XXXXXX";
    char from[96];
    char path[128];
    sj_copied copied;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/to", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/to/lab.db", folder);
    for (int has_log = 0; has_log <= 1; ++has_log) {
        snprintf(from, sizeof(from), "%s/from.db", folder);
        assert_int_equal(sj_database_backup(lab->path, from, &copied, &lab->error), SJ_OK);
        if (has_log) {
            const lab_file other = name_lab(from);
            lab_file_run(&other, "PRAGMA journal_mode = WAL");
        }
        assert_int_equal(count_files(from), 1);
        assert_int_equal(chmod(from, 0444), 0);
        assert_int_equal(chmod(folder, 0555), 0);
        assert_int_equal(restore_as_nobody(from, path), SJ_OK);
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(count_files(from), 1);
        expect(path, "SELECT name FROM sessions", "before|\n");
        lab_file_remove(path);
        lab_file_remove(from);
    }
    snprintf(path, sizeof(path), "%s/to", folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Backups of older versions are marked as having a log. Reading one creates the log's files and
 * removes them again. The backup's bytes stay the same. */
static void reading_a_backup_leaves_nothing_beside_it(void **state)
{
    lab_file *lab = *state;
    char copy[128];
    char path[128];
    char kept[128];
    sj_copied copied;
    name_beside(lab, "copy", copy);
    name_beside(lab, "restored", path);
    name_beside(lab, "kept", kept);
    assert_int_equal(sj_database_backup(lab->path, copy, &copied, &lab->error), SJ_OK);
    const lab_file other = name_lab(copy);
    lab_file_run(&other, "PRAGMA journal_mode = WAL");
    assert_int_equal(count_files(copy), 1);
    char *before = read_whole(copy);
    assert_int_equal(restore(copy, path, false), SJ_OK);
    assert_int_equal(count_files(copy), 1);
    assert_int_equal(sj_database_backup(copy, kept, &copied, &lab->error), SJ_OK);
    assert_int_equal(count_files(copy), 1);
    char *after = read_whole(copy);
    assert_memory_equal(before, after, (size_t)copied.bytes);
    free(before);
    free(after);
    lab_file_remove(kept);
    lab_file_remove(path);
    lab_file_remove(copy);
}

/* The server could not open a database that lacks a table or has an unreadable schema. */
static void a_copy_that_cannot_be_opened_gets_no_name(void **state)
{
    static const char *const damages[] = {
        "PRAGMA foreign_keys = OFF; DROP TABLE slow_calls",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE (' WHERE name ="
        " 'gaps'"};
    lab_file *lab = *state;
    char path[128];
    name_beside(lab, "restored", path);
    for (int i = 0; i < 2; ++i) {
        lab_file_run(lab, damages[i]);
        assert_int_not_equal(restore(lab->path, path, true), SJ_OK);
        assert_int_equal(count_files(path), 0);
    }
}

static void a_damaged_backup_is_restored_only_on_request(void **state)
{
    static const char *const damages[][2] = {
        {"UPDATE blocks SET data = zeroblob(length(data)) WHERE block_id = 2", "corrupt data"},
        {"UPDATE call_paths SET total_ns = total_ns + 1000000000", "do not follow"}};
    lab_file *lab = *state;
    char path[128];
    name_beside(lab, "restored", path);
    for (int i = 0; i < 2; ++i) {
        found[0] = '\0';
        lab_file_run(lab, damages[i][0]);
        assert_int_equal(restore(lab->path, path, false), SJ_ECORRUPT);
        assert_non_null(strstr(found, damages[i][1]));
        assert_int_equal(count_files(path), 0);
        if (i == 0) { /* its sums are compared when its blocks can be read */
            assert_int_equal(restore(lab->path, path, true), SJ_OK);
            expect(path, "SELECT count(*) FROM sessions", "1|\n");
            lab_file_remove(path);
            lab_file_tear_down(state);
            set_up(state);
            lab = *state;
            name_beside(lab, "restored", path);
        }
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, lab_file_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_backup_is_as_of_its_beginning_while_others_write),
        CASE(a_backup_overwrites_no_file),
        CASE(the_name_of_a_deleted_file_in_use_is_refused),
        CASE(the_name_of_a_renamed_database_in_use_is_refused),
        CASE(files_that_are_not_a_database_are_refused),
        CASE(a_backup_is_restored_when_it_is_sound),
        CASE(a_backup_has_the_blocks_that_were_moved),
        CASE(a_copy_without_its_log_gets_no_name),
        CASE(a_backup_in_a_read_only_folder_is_restored),
        CASE(reading_a_backup_leaves_nothing_beside_it),
        CASE(a_copy_that_cannot_be_opened_gets_no_name),
        CASE(a_damaged_backup_is_restored_only_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
