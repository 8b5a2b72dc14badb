/* Opening and making databases, also by two processes at once. The test is linked with the database
 * of a future version (next_version). 0001_initial.sql makes a database of an older version. */
#include "collector-server/store/database.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static sj_status other_status; /* status of the second process */
static int others;             /* processes that opened the file in between */
/* the statement of the first process before which the second one opens the file */
static const char *moment;

/* Opens the same file in a second process at a given moment of the first, for example before it
 * takes the lock but after it has read the version. The second process is done before the first one
 * continues. */
static int come_in_between(unsigned event, void *context, void *statement, void *text)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    (void)event;
    (void)context;
    (void)statement;
    if (strcmp(text, moment) != 0 || others++ > 0) {
        return 0;
    }
    other_status = sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error);
    sqlite3_close(opened);
    return 0;
}

static int watch(sqlite3 *database, const char **text, const struct sqlite3_api_routines *api)
{
    (void)text;
    (void)api;
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, come_in_between, NULL);
}

static int64_t ask_number(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return number;
}

static void open_beside_another(const char *statement)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    moment = statement;
    others = 0;
    other_status = SJ_EIO;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    const sj_status status = sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error);
    sqlite3_reset_auto_extension();
    if (status != SJ_OK) {
        print_error("%s\n", error.text);
    }
    assert_int_equal(status, SJ_OK);
    assert_int_equal(other_status, SJ_OK);
    assert_true(others >= 2); /* the second process came in there, too */
    assert_int_equal(ask_number(opened, "PRAGMA user_version"), sj_database_version());
    sqlite3_close(opened);
}

/* Tests the extended codes, too. SQLite has several for damage. */
static void damage_is_recognized_by_all_of_its_codes(void **state)
{
    (void)state;
    static const int damaged[] = {SQLITE_CORRUPT, SQLITE_CORRUPT_VTAB, SQLITE_CORRUPT_SEQUENCE,
                                  SQLITE_CORRUPT_INDEX, SQLITE_NOTADB};
    static const int whole[] = {SQLITE_OK, SQLITE_IOERR_READ, SQLITE_FULL, SQLITE_ERROR};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        assert_true(sj_database_is_damaged(damaged[i]));
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        assert_false(sj_database_is_damaged(whole[i]));
    }
}

static int remove_file(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    (void)state;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); ++i) {
        char name[96];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
    return 0;
}

static sqlite3 *holder;

/* Another connection holds the file when the log is requested, and releases it before the next
 * request. */
static int hold_once(unsigned event, void *context, void *statement, void *text)
{
    (void)event;
    (void)context;
    (void)statement;
    if (strcmp(text, "PRAGMA journal_mode=WAL") != 0) {
        return 0;
    }
    if (others++ == 0) {
        assert_int_equal(sqlite3_exec(holder, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    } else if (sqlite3_get_autocommit(holder) == 0) {
        assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    }
    return 0;
}

static int watch_log(sqlite3 *database, const char **text, const struct sqlite3_api_routines *api)
{
    (void)text;
    (void)api;
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, hold_once, NULL);
}

static void opening_waits_for_the_log_of_a_new_file(void **state)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    (void)state;
    others = 0;
    assert_int_equal(sqlite3_open(path, &holder), SQLITE_OK);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch_log), SQLITE_OK);
    const sj_status status = sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error);
    sqlite3_reset_auto_extension();
    sqlite3_close(holder);
    assert_int_equal(status, SJ_OK);
    assert_true(others >= 2);
    sqlite3_close(opened);
}

static void two_processes_can_create_a_database_at_once(void **state)
{
    (void)state;
    open_beside_another("BEGIN IMMEDIATE");
}

/* A file that is created between two reads is not taken for another program's. */
static void a_database_created_during_the_check_is_accepted(void **state)
{
    static const char *const looks[] = {"SELECT count(*) FROM sqlite_schema", "PRAGMA user_version",
                                        "PRAGMA application_id"};
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); ++i) {
        open_beside_another(looks[i]);
        remove_file(state);
    }
}

static void make_first_version(void)
{
    static char sql[1 << 18];
    sqlite3 *made = NULL;
    FILE *file = fopen(SJ_MIGRATIONS "/0001_initial.sql", "r");
    assert_non_null(file);
    const size_t size = fread(sql, 1, sizeof(sql) - 1, file);
    fclose(file);
    sql[size] = '\0';
    assert_int_equal(sqlite3_open(path, &made), SQLITE_OK);
    assert_int_equal(sqlite3_exec(made, sql, NULL, NULL, NULL), SQLITE_OK);
    snprintf(sql, sizeof(sql),
             "PRAGMA application_id=%d; PRAGMA user_version=1; INSERT INTO devices (uuid, name,"
             " first_seen_realtime_ns, last_seen_realtime_ns) VALUES (x'00', 'old', 0, 0)",
             (int)SJ_DATABASE_APPLICATION_ID);
    assert_int_equal(sqlite3_exec(made, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(made);
}

static void two_processes_can_migrate_a_database_at_once(void **state)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    (void)state;
    make_first_version();
    open_beside_another("BEGIN IMMEDIATE");
    assert_int_equal(sj_database_open(path, SJ_DATABASE_READ, &opened, &error), SJ_OK);
    assert_int_equal(ask_number(opened, "SELECT count(*) FROM devices WHERE room = 'room of old'"),
                     1);
    sqlite3_close(opened);
}

/* Describes a schema without its text, because comments of migrations are removed at compile
 * time. */
static char *describe_schema(const char *name)
{
    static const char *const sql =
        "SELECT group_concat(line, char(10)) FROM (SELECT m.type || ' ' || m.name || ' ' || "
        "m.tbl_name || coalesce((SELECT group_concat(printf(', %s %s %d %Q %d', c.name, c.type, "
        "c.\"notnull\", c.dflt_value, c.pk), '') FROM pragma_table_xinfo(m.name) AS c), '') AS "
        "line "
        "FROM sqlite_schema AS m ORDER BY m.type, m.name)";
    sqlite3 *opened = NULL;
    sqlite3_stmt *statement = NULL;
    sj_error error = {0};
    assert_int_equal(sj_database_open(name, SJ_DATABASE_CREATE, &opened, &error), SJ_OK);
    assert_int_equal(sqlite3_prepare_v2(opened, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(opened);
    return text;
}

static void a_new_database_has_the_schema_of_one_that_was_brought_up_to_date(void **state)
{
    make_first_version();
    char *migrated = describe_schema(path);
    remove_file(state);
    char *made = describe_schema(path);
    assert_string_equal(migrated, made);
    assert_true(strlen(made) > 5000);
    free(migrated);
    free(made);
}

static void a_device_or_directory_is_refused_as_a_database(void **state)
{
    (void)state;
    static const char *const names[] = {"/dev/null", "/tmp", ""};
    static const char *const reasons[] = {"is not a file", "is not a file", "is empty"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        sqlite3 *opened = NULL;
        sj_error error = {0};
        assert_int_equal(sj_database_open(names[i], SJ_DATABASE_CREATE, &opened, &error),
                         SJ_EINVAL);
        assert_non_null(strstr(error.text, reasons[i]));
    }
}

static void a_new_database_is_for_its_owner_only(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[96];
    struct stat about;
    sqlite3 *opened = NULL;
    sj_error error = {0};
    const mode_t before = umask(022);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error), SJ_OK);
    (void)umask(before);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        assert_int_equal(stat(name, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0600);
    }
    sqlite3_close(opened);
}

enum { UNPRIVILEGED_USER = 65534 };

static sj_status open_as_nobody(const char *name, sj_error *error)
{
    sqlite3 *opened = NULL;
    const uid_t user = geteuid();
    if (user == 0) {
        assert_int_equal(seteuid(UNPRIVILEGED_USER), 0);
    }
    const sj_status status = sj_database_open(name, SJ_DATABASE_READ, &opened, error);
    if (status == SJ_OK) {
        assert_int_equal(ask_number(opened, "SELECT count(*) FROM sessions"), 0);
        sqlite3_close(opened);
    }
    assert_int_equal(seteuid(user), 0);
    return status;
}

static void a_database_in_a_read_only_folder_is_read(void **state)
{
    (void)state;
    char folder[] = "/tmp/database_test.XXXXXX";
    char name[96];
    char log[128];
    sqlite3 *opened = NULL;
    sj_error error = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/100%%20 ?#.db", folder);
    snprintf(log, sizeof(log), "%s-wal", name);
    assert_int_equal(sj_database_open(name, SJ_DATABASE_CREATE, &opened, &error), SJ_OK);
    sqlite3_close(opened);
    assert_int_equal(chmod(name, 0444), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(open_as_nobody(name, &error), SJ_OK);

    /* data that is only in the log must not be missing silently */
    assert_int_equal(chmod(folder, 0755), 0);
    FILE *file = fopen(log, "w");
    assert_non_null(file);
    fputs("changes", file);
    fclose(file);
    assert_int_equal(chmod(log, 0444), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(open_as_nobody(name, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "-wal"));

    assert_int_equal(chmod(folder, 0755), 0);
    unlink(log);
    /* root: the folder belongs to another user, who may write to it at any time */
    if (geteuid() == 0) {
        assert_int_equal(open_as_nobody(name, &error), SJ_EIO);
        assert_non_null(strstr(error.text, "others may be writing"));
    }
    unlink(name);
    assert_int_equal(rmdir(folder), 0);
}

/* Look-ups for each block: an index with a condition must not make SQLite compile them again for
 * each value. */
static void statements_are_compiled_once(void **state)
{
    static const char *const texts[] = {
        "SELECT block_id FROM blocks WHERE stream_id = ?1 AND kind = ?2 AND first_event = ?3"
        " AND event_count = ?4",
        "SELECT block_id FROM blocks WHERE stream_id = ?1 AND kind = ?2 AND first_event < ?3"
        " AND event_count > ?4 ORDER BY first_event DESC LIMIT 1"};
    sqlite3 *opened = NULL;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error), SJ_OK);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        sqlite3_stmt *statement = NULL;
        assert_int_equal(sqlite3_prepare_v2(opened, texts[i], -1, &statement, NULL), SQLITE_OK);
        for (int round = 0; round < 5; ++round) {
            for (int value = 1; value <= 4; ++value) {
                assert_int_equal(sqlite3_bind_int(statement, value, round + value), SQLITE_OK);
            }
            assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
            assert_int_equal(sqlite3_reset(statement), SQLITE_OK);
        }
        assert_int_equal(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0), 0);
        sqlite3_finalize(statement);
    }
    sqlite3_close(opened);
}

static void a_database_of_a_newer_version_is_refused(void **state)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error), SJ_OK);
    assert_int_equal(sqlite3_exec(opened, "PRAGMA user_version=1000", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(opened);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &opened, &error), SJ_EVERSION);
    assert_non_null(strstr(error.text, "written by a newer Sojourn"));
}

/* Databases of development versions have version numbers that releases use again. */
static void a_database_of_a_development_version_is_refused(void **state)
{
    static const char sentence[] =
        " was written by a development version of Sojourn from before 0.1.0, which no release "
        "reads; record again into another file";
    (void)state;
    for (int version = 1; version <= 44; version += 43) {
        for (int mode = SJ_DATABASE_READ; mode <= SJ_DATABASE_CREATE; ++mode) {
            char sql[96];
            sqlite3 *opened = NULL;
            sj_error error = {0};
            make_first_version();
            snprintf(sql, sizeof(sql), "PRAGMA application_id=0x534a4442; PRAGMA user_version=%d",
                     version);
            assert_int_equal(sqlite3_open(path, &opened), SQLITE_OK);
            assert_int_equal(sqlite3_exec(opened, sql, NULL, NULL, NULL), SQLITE_OK);
            sqlite3_close(opened);
            assert_int_equal(sj_database_open(path, (sj_database_mode)mode, &opened, &error),
                             SJ_EUNSUPPORTED);
            assert_int_equal(strncmp(error.text, path, strlen(path)), 0);
            assert_string_equal(error.text + strlen(path), sentence);
            remove_file(state);
        }
    }
}

/* Ends the process before it commits the migration. */
static int die_at_commit(unsigned event, void *context, void *statement, void *text)
{
    (void)event;
    (void)context;
    (void)statement;
    return strcmp(text, "COMMIT") == 0 ? raise(SIGKILL) : 0;
}

static int watch_commit(sqlite3 *database, const char **text,
                        const struct sqlite3_api_routines *api)
{
    (void)text;
    (void)api;
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, die_at_commit, NULL);
}

static void a_killed_migration_has_done_nothing_and_is_done_again(void **state)
{
    sqlite3 *opened = NULL;
    sj_error error = {0};
    int ending = 0;
    (void)state;
    make_first_version();
    const pid_t child = fork();
    if (child == 0) {
        sqlite3_auto_extension((void (*)(void))watch_commit);
        _exit(sj_database_open(path, SJ_DATABASE_WRITE, &opened, &error) == SJ_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ending, 0), child);
    assert_true(WIFSIGNALED(ending) && WTERMSIG(ending) == SIGKILL);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_READ, &opened, &error), SJ_EVERSION);
    assert_int_equal(sqlite3_open(path, &opened), SQLITE_OK);
    assert_int_equal(ask_number(opened, "PRAGMA user_version"), 1);
    assert_int_equal(ask_number(opened, "SELECT count(*) FROM sqlite_schema WHERE name = 'rooms'"),
                     0);
    sqlite3_close(opened);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_WRITE, &opened, &error), SJ_OK);
    assert_int_equal(ask_number(opened, "PRAGMA user_version"), sj_database_version());
    assert_int_equal(ask_number(opened, "SELECT count(*) FROM rooms WHERE name = 'room of old'"),
                     1);
    sqlite3_close(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_recognized_by_all_of_its_codes),
        cmocka_unit_test(a_database_in_a_read_only_folder_is_read),
        cmocka_unit_test_setup_teardown(
            a_new_database_has_the_schema_of_one_that_was_brought_up_to_date, remove_file,
            remove_file),
        cmocka_unit_test(a_device_or_directory_is_refused_as_a_database),
        cmocka_unit_test_setup_teardown(a_new_database_is_for_its_owner_only, remove_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(statements_are_compiled_once, remove_file, remove_file),
        cmocka_unit_test_setup_teardown(a_database_of_a_newer_version_is_refused, remove_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(a_database_of_a_development_version_is_refused, remove_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(a_killed_migration_has_done_nothing_and_is_done_again,
                                        remove_file, remove_file),
        cmocka_unit_test_setup_teardown(two_processes_can_create_a_database_at_once, remove_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(a_database_created_during_the_check_is_accepted,
                                        remove_file, remove_file),
        cmocka_unit_test_setup_teardown(opening_waits_for_the_log_of_a_new_file, remove_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(two_processes_can_migrate_a_database_at_once, remove_file,
                                        remove_file),
    };
    snprintf(path, sizeof(path), "database_test.%d.db", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
