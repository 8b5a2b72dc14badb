/* Backups are as of one moment, end while others write, and overwrite nothing; a damaged one is not
 * restored. */
#include "collector-server/maintenance/database_copy.h"

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

static lab_file *written; /* to, while a copy is made */
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

static char *ask(const char *path, const char *sql)
{
    lab_file other = {0};
    snprintf(other.path, sizeof(other.path), "%s", path);
    return lab_file_ask(&other, sql);
}

static void expect(const char *path, const char *sql, const char *answer)
{
    char *text = ask(path, sql);
    assert_string_equal(text, answer);
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

/* Between two steps of the copy: at some time a copy that began anew would end, too. */
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

static void nothing_is_overwritten(void **state)
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
        assert_int_equal(count_files(path), 1); /* and no file of the attempt */
        struct stat about;
        assert_int_equal(stat(taken[i], &about), 0);
        assert_int_equal(about.st_size, 4);
        assert_int_equal(unlink(taken[i]), 0);
    }
}

static void what_is_no_database_is_refused(void **state)
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
    assert_string_equal(found, "");
    char *sums = lab_file_ask(lab, lab_file_sums_sql);
    expect(path, lab_file_sums_sql, sums);
    sqlite3_free(sums);
    lab_file_remove(path);
    /* calls that had been lost before are no damage of the backup */
    lab_file_run(lab, "UPDATE sessions SET sent_calls = sent_calls + 5, missing_calls = 5,"
                      " lost_calls = lost_calls + 5;"
                      "INSERT INTO gaps (session_id, reason, calls, events, start_ns, end_ns)"
                      " VALUES (1, 'not_stored', 5, 5, 0, 1)");
    assert_int_equal(restore(lab->path, path, false), SJ_OK);
    assert_non_null(strstr(found, "5 calls"));
    lab_file_remove(path);
    lab_file_remove(copy);
}

static void a_damaged_backup_is_restored_only_when_asked(void **state)
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
        CASE(nothing_is_overwritten),
        CASE(what_is_no_database_is_refused),
        CASE(a_backup_is_restored_when_it_is_sound),
        CASE(a_damaged_backup_is_restored_only_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
