/* The forwarder counts what it has read and sent of the pending sessions, and no session stays
 * pending for ever. */
#include "collector-server/forward/forwarder.h"
#include "collector-server/store/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SESSIONS = 5 };

static sj_status open_target(const sj_forward_options *options, sj_forward_target **target,
                             sj_error *error)
{
    (void)options;
    (void)error;
    *target = NULL;
    return SJ_OK;
}

static sj_status check_target(sj_forward_target *target, sj_error *error)
{
    (void)target;
    (void)error;
    return SJ_OK;
}

static uint64_t newest_there; /* newest version that the target reports */

static sj_status newest_version(sj_forward_target *target, const sj_forward_table *table,
                                sj_slice owners, uint64_t *version, sj_error *error)
{
    (void)target;
    (void)table;
    (void)owners;
    (void)error;
    *version = newest_there;
    return SJ_OK;
}

static size_t months_taken = SIZE_MAX; /* most months of one insert that the target takes */
static size_t months_seen;             /* most months of one insert so far */

/* Counts the months of rows. The test's days are 31 apart, so no two of them are in one month. */
static size_t count_days(const sj_native_rows *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->rows; ++i) {
        size_t before = 0;
        while (before < i &&
               memcmp(rows->days.bytes + 2 * before, rows->days.bytes + 2 * i, 2) != 0) {
            before++;
        }
        count += before == i;
    }
    return count;
}

static sj_status write_rows(sj_forward_target *target, const sj_forward_table *table,
                            const sj_native_rows *rows, sj_error *error)
{
    (void)target;
    (void)table;
    assert_true(rows->rows != 0);
    const size_t months = count_days(rows);
    if (months > months_taken) {
        return sj_fail(error, SJ_ELIMIT, "Too many partitions");
    }
    months_seen = months > months_seen ? months : months_seen;
    return SJ_OK;
}

static void close_target(sj_forward_target *target)
{
    assert_null(target);
}

static const sj_forward_target_kind taking_all = {.name = "test",
                                                  .open = open_target,
                                                  .check = check_target,
                                                  .newest_version = newest_version,
                                                  .write = write_rows,
                                                  .close = close_target};

static void make_database(const char *path)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    char sql[512];
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &database, &error), SJ_OK);
    assert_int_equal(
        sqlite3_exec(database,
                     "INSERT INTO devices(device_id, uuid, name, first_seen_realtime_ns,"
                     " last_seen_realtime_ns) VALUES (1, zeroblob(16), 'desk', 1, 1)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    for (int i = 1; i <= SESSIONS; i++) {
        snprintf(sql, sizeof(sql),
                 "INSERT INTO sessions(session_id, uuid, device_id, state, command,"
                 " started_realtime_ns, ended_realtime_ns, started_ticks, tick_ns_numerator,"
                 " tick_ns_denominator) VALUES (%d, randomblob(16), 1, 'completed', './app',"
                 " %d000000000, %d500000000, 0, 1, 1)",
                 i, i, i);
        assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    sqlite3_close(database);
}

static void test_each_session_counts_as_two_steps(void **unused)
{
    char folder[] = "/tmp/sj_forwarder_XXXXXX";
    char path[64];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/lab.db", folder);
    make_database(path);
    _Atomic uint64_t steps = 0;
    const sj_forward_options options = {.url = "test", .steps = &steps};
    sj_forwarder *forwarder = NULL;
    sj_forward_account account;
    sj_error error = {0};
    uint64_t sent = 0;
    assert_int_equal(sj_forwarder_open(path, &taking_all, &options, &forwarder, &error), SJ_OK);
    assert_int_equal(sj_forwarder_account(forwarder, &account, &error), SJ_OK);
    assert_int_equal(account.owed, SESSIONS);
    assert_int_equal(sj_forwarder_round(forwarder, &sent, &error), SJ_OK);
    assert_int_equal(sent, SESSIONS);
    assert_int_equal(atomic_load(&steps), 2 * SESSIONS);
    assert_int_equal(sj_forwarder_round(forwarder, &sent, &error), SJ_OK);
    assert_int_equal(sent, 0);
    assert_int_equal(atomic_load(&steps), 2 * SESSIONS);
    sj_forwarder_close(forwarder);
    unlink(path);
    rmdir(folder);
}

static void change(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    assert_int_equal(sj_database_open(path, SJ_DATABASE_WRITE, &database, &error), SJ_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* Forwards everything pending, with only the given tables. Checks that nothing is pending
 * afterwards. */
static uint64_t give_all(const char *path, const char *tables, const char *left_out)
{
    const sj_forward_options options = {.url = "test", .tables = tables};
    sj_forwarder *forwarder = NULL;
    sj_forward_account account;
    char list[512];
    sj_error error = {0};
    uint64_t sent = 0;
    uint64_t again = 0;
    assert_int_equal(sj_forwarder_open(path, &taking_all, &options, &forwarder, &error), SJ_OK);
    assert_int_equal(sj_forwarder_round(forwarder, &sent, &error), SJ_OK);
    assert_int_equal(sj_forwarder_account(forwarder, &account, &error), SJ_OK);
    assert_int_equal(account.owed, 0);
    assert_int_equal(sj_forwarder_round(forwarder, &again, &error), SJ_OK);
    assert_int_equal(again, 0);
    assert_int_equal(sj_forwarder_left_out(forwarder, list, sizeof(list), &error), SJ_OK);
    assert_int_equal(strncmp(list, left_out, strlen(left_out)), 0);
    assert_int_equal(list[0] == '\0', left_out[0] == '\0');
    sj_forwarder_close(forwarder);
    return sent;
}

/* Names have 400 and tags 3,000 characters of three bytes, and one text is not valid UTF-8. */
static void test_long_names_are_forwarded_once(void **unused)
{
    char folder[] = "/tmp/sj_forwarder_XXXXXX";
    char path[64];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/lab.db", folder);
    make_database(path);
    change(path, "UPDATE sessions SET name = replace(hex(zeroblob(200)), '0', char(8364))");
    assert_int_equal(give_all(path, NULL, ""), SESSIONS);
    assert_int_equal(give_all(path, "marks,commands", "[\"call_edges\",\"call_paths\""), SESSIONS);
    assert_int_equal(give_all(path, "gaps,commands", "[\"call_edges\",\"call_paths\""), SESSIONS);
    change(path, "UPDATE sessions SET tags = '{\"a\":\"' || replace(hex(zeroblob(1500)), '0',"
                 " char(8364)) || '\"}' WHERE session_id <= 2");
    change(path, "UPDATE sessions SET name = CAST(x'c0' || zeroblob(9000) AS TEXT)"
                 " WHERE session_id = 3");
    change(path, "UPDATE sessions SET name = CAST(replace(hex(zeroblob(4500)), '0', x'80') AS"
                 " TEXT) WHERE session_id = 4");
    assert_int_equal(give_all(path, "gaps,commands", "["), 4);
    change(path, "UPDATE sessions SET name = 'other' WHERE session_id = 1");
    assert_int_equal(give_all(path, "gaps,commands", "["), 1);
    assert_int_equal(give_all(path, NULL, ""), SESSIONS);
    unlink(path);
    rmdir(folder);
}

/* Returns the number of sessions that were forwarded with a greater version. */
static int count_newer(const char *path, uint64_t version)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    sj_error error = {0};
    assert_int_equal(sj_database_open(path, SJ_DATABASE_READ, &database, &error), SJ_OK);
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT count(*) FROM forwarded_sessions WHERE version > ?",
                                        -1, &row, NULL),
                     SQLITE_OK);
    sqlite3_bind_int64(row, 1, (sqlite3_int64)version);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const int count = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(database);
    return count;
}

/* Versions are newer than the target's after this database was restored from a copy, and newer than
 * this database's after the target was restored. The clock does not matter. */
static void test_forwarded_versions_are_newer_than_both_sides(void **unused)
{
    char folder[] = "/tmp/sj_forwarder_XXXXXX";
    char path[64];
    const uint64_t far = UINT64_C(1) << 62;
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/lab.db", folder);
    make_database(path);
    newest_there = far;
    assert_int_equal(give_all(path, NULL, ""), SESSIONS);
    assert_int_equal(count_newer(path, far), SESSIONS);
    newest_there = 0;
    change(path, "UPDATE forwarded_sessions SET version = version * 3 / 2");
    change(path, "UPDATE sessions SET name = 'other' WHERE session_id = 2");
    assert_int_equal(give_all(path, NULL, ""), 1);
    assert_int_equal(count_newer(path, far / 2 * 3), SESSIONS);
    unlink(path);
    rmdir(folder);
}

/* Sends everything, and returns the most months of one insert. */
static size_t months_of_all(const char *path, const char *name)
{
    const sj_forward_options options = {.url = name};
    sj_forwarder *forwarder = NULL;
    sj_error error = {0};
    uint64_t sent = 0;
    uint64_t all = 0;
    months_seen = 0;
    assert_int_equal(sj_forwarder_open(path, &taking_all, &options, &forwarder, &error), SJ_OK);
    do {
        assert_int_equal(sj_forwarder_round(forwarder, &sent, &error), SJ_OK);
        all += sent;
    } while (sent != 0);
    sj_forwarder_close(forwarder);
    assert_int_equal(all, SESSIONS + 55);
    return months_seen;
}

/* ClickHouse refuses an insert into more than 100 partitions, or fewer if it is configured so. */
static void test_no_insert_has_rows_of_too_many_months(void **unused)
{
    char folder[] = "/tmp/sj_forwarder_XXXXXX";
    char path[64];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/lab.db", folder);
    make_database(path);
    change(path, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 55)"
                 " INSERT INTO sessions(session_id, uuid, device_id, state, command,"
                 " started_realtime_ns, ended_realtime_ns, started_ticks, tick_ns_numerator,"
                 " tick_ns_denominator) SELECT 100 + i, randomblob(16), 1, 'completed', './app',"
                 " i * 31 * 86400000000000, i * 31 * 86400000000000 + 1, 0, 1, 1 FROM n");
    change(path, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 55)"
                 " INSERT INTO commands(device_id, kind, state, timeout_ms, created_realtime_ns)"
                 " SELECT 1, 'list', 'done', 1, i * 31 * 86400000000000 FROM n");
    assert_int_equal(months_of_all(path, "usual"), 50);
    months_taken = 10;
    assert_int_equal(months_of_all(path, "limited"), 1);
    months_taken = SIZE_MAX;
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_session_counts_as_two_steps),
        cmocka_unit_test(test_long_names_are_forwarded_once),
        cmocka_unit_test(test_no_insert_has_rows_of_too_many_months),
        cmocka_unit_test(test_forwarded_versions_are_newer_than_both_sides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
