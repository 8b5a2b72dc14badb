/* Reading rows: a step that fails is never taken for the end of the rows. */
#include "collector-server/store/sql.h"

#include "tests/support/fault_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char count_sql[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                                "WHERE i < 10) SELECT i FROM n";

typedef struct rows_read {
    int64_t count;
    int64_t interrupt_at; /* interrupts the statement at this row */
    int64_t end_at;       /* returns `end` at this row */
    int end;
} rows_read;

static int scan_row(void *context, sqlite3_stmt *row)
{
    rows_read *read = context;
    if (++read->count == read->interrupt_at) {
        sqlite3_interrupt(sqlite3_db_handle(row));
    }
    return read->count == read->end_at ? read->end : SQLITE_OK;
}

static sj_status read_row(void *context, sqlite3_stmt *row)
{
    rows_read *read = context;
    scan_row(read, row);
    return read->count == read->end_at ? (sj_status)read->end : SJ_OK;
}

static sqlite3 *open_memory(void)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    return database;
}

static void test_scan_returns_the_last_result(void **state)
{
    (void)state;
    static const struct {
        rows_read read;
        int result;
        int64_t rows;
    } cases[] = {
        {{0}, SQLITE_OK, 10},
        {{.interrupt_at = 4}, SQLITE_INTERRUPT, 4},
        {{.end_at = 3, .end = SQLITE_DONE}, SQLITE_OK, 3},
        {{.end_at = 3, .end = SQLITE_NOMEM}, SQLITE_NOMEM, 3},
    };
    sqlite3 *database = open_memory();
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, count_sql, -1, &statement, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rows_read read = cases[i].read;
        assert_int_equal(sj_sql_scan(statement, scan_row, &read), cases[i].result);
        assert_int_equal(read.count, cases[i].rows);
        assert_false(sqlite3_stmt_busy(statement));
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

static void test_interrupt_is_an_error(void **state)
{
    (void)state;
    sqlite3 *database = open_memory();
    sj_error error = {0};
    rows_read read = {.interrupt_at = 4};
    assert_int_equal(sj_sql_each(database, count_sql, (sj_sql_binds){0}, read_row, &read, &error),
                     SJ_EIO);
    assert_int_equal(read.count, 4);
    assert_string_equal(error.text, "the database cannot be read: interrupted");
    sqlite3_close(database);
}

static void test_reader_ends_the_rows(void **state)
{
    (void)state;
    sqlite3 *database = open_memory();
    sj_error error = {0};
    rows_read read = {.end_at = 3, .end = SJ_EEXIST};
    assert_int_equal(sj_sql_each(database, count_sql, (sj_sql_binds){0}, read_row, &read, &error),
                     SJ_EEXIST);
    assert_int_equal(read.count, 3);
    assert_string_equal(error.text, "");
    read = (rows_read){.end_at = 5, .end = SJ_ENOMEM};
    assert_int_equal(sj_sql_each(database, count_sql, (sj_sql_binds){0}, read_row, &read, &error),
                     SJ_ENOMEM);
    assert_string_equal(error.text, "out of memory");
    sqlite3_close(database);
}

static void test_lists_numbers(void **state)
{
    (void)state;
    sqlite3 *database = open_memory();
    sj_sql_numbers numbers = {0};
    sj_error error = {0};
    assert_int_equal(sj_sql_list_numbers(database, count_sql, (sj_sql_binds){0}, &numbers, &error),
                     SJ_OK);
    assert_int_equal(numbers.count, 10);
    assert_int_equal(numbers.values[9], 10);
    assert_int_equal(
        sj_sql_list_numbers(database, "SELECT length(?1)", SJ_SQL_TEXT("four"), &numbers, &error),
        SJ_OK);
    assert_int_equal(numbers.count, 11);
    assert_int_equal(numbers.values[10], 4);
    free(numbers.values);
    sqlite3_close(database);
}

/* Each read of the file fails once. The rows are then either all read, or the error is returned. */
static void test_failed_reads_are_errors(void **state)
{
    (void)state;
    char path[] = "/tmp/sj-sql-XXXXXX";
    close(mkstemp(path));
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "CREATE TABLE t (i INTEGER PRIMARY KEY, filler BLOB);"
                                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                                  "WHERE i < 20) INSERT INTO t SELECT i, zeroblob(4000) FROM n",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    int failures = 0;
    for (uint64_t n = 0;; n++) {
        rows_read read = {0};
        sj_error error = {0};
        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        fault_vfs_at(n, FAULT_IO, false);
        const sj_status status = sj_sql_each(database, "SELECT filler FROM t", (sj_sql_binds){0},
                                             read_row, &read, &error);
        const bool has_failed = fault_vfs_stop();
        sqlite3_close(database);
        if (!has_failed) {
            assert_int_equal(status, SJ_OK);
            break;
        }
        assert_true(status == SJ_OK ? read.count == 20 : error.text[0] != '\0');
        failures += status != SJ_OK && read.count > 0;
    }
    assert_true(failures > 10); /* failures after the first row */
    unlink(path);
}

int main(void)
{
    fault_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_returns_the_last_result),
        cmocka_unit_test(test_interrupt_is_an_error),
        cmocka_unit_test(test_reader_ends_the_rows),
        cmocka_unit_test(test_lists_numbers),
        cmocka_unit_test(test_failed_reads_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
