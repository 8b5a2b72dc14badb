#include "collector-server/query/query.h"
#include "collector-server/query/sql_guard.h"
#include "collector-server/store/store.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char path[] = "sql_guard_test.db";
static sqlite3 *database;
static sj_sql_guard *guard;

static int open_guarded(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 1,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 500,
                               .block_events = 100,
                               .functions = 10,
                               .max_depth = 10};
    make_trace(path, &shape, &made);
    free_trace(&made);
    sj_error error = {0};
    const sj_sql_limits limits = {
        .time_ms = 300, .max_rows = 50, .max_value_bytes = 1 << 20, .heap_bytes = 256 << 20};
    return sj_database_open_reader(path, &database, &error) != SJ_OK ||
           sj_sql_guard_new(database, &limits, &guard, &error) != SJ_OK;
}

static int close_guarded(void **state)
{
    (void)state;
    sj_sql_guard_free(guard);
    sqlite3_close(database);
    return 0;
}

static bool count_rows(void *context, sqlite3_stmt *statement, bool values)
{
    (void)statement;
    *(int *)context += values;
    return true;
}

static sj_status run(const char *sql, int *rows, sj_error *error)
{
    sj_sql_outcome outcome;
    *rows = 0;
    *error = (sj_error){0};
    return sj_sql_guard_run(guard, sql, count_rows, rows, &outcome, error);
}

static void reading_is_allowed(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT * FROM sessions",
        "SELECT function_id, count(*) FROM calls GROUP BY 1",
        "SELECT * FROM call_aggregate(1)",
        "SELECT * FROM call_tree(1)",
        "SELECT format_duration(duration_ns) FROM calls LIMIT 3",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM "
        "n",
        "SELECT name FROM pragma_table_info('calls')",
        "EXPLAIN QUERY PLAN SELECT * FROM calls;  \n",
    };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); ++i) {
        int rows;
        sj_error error;
        const sj_status status = run(queries[i], &rows, &error);
        if (status != SJ_OK || rows == 0) {
            fail_msg("%s: %d rows, %s", queries[i], rows, error.text);
        }
    }
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "ATTACH '/etc/passwd' AS other",
        "ATTACH ':memory:' AS other",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA hard_heap_limit = 0",
        "SELECT load_extension('libsojourn-sqlite')",
        "SELECT writefile('x', 'y')",
        "SELECT fts3_tokenizer('simple')",
        "DELETE FROM sessions",
        "INSERT INTO marks (session_id, number, name, is_end, at_ns) VALUES (1, 1, 'x', 0, 0)",
        "UPDATE sessions SET name = 'x'",
        "UPDATE sqlite_master SET sql = ''",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t AS SELECT * FROM calls",
        "CREATE TEMP TRIGGER r AFTER INSERT ON marks BEGIN SELECT 1; END",
        "DROP TABLE sessions",
        "VACUUM INTO 'stolen.db'",
        "VACUUM",
        "BEGIN",
        "SAVEPOINT s",
        "ANALYZE",
        "REINDEX",
    };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); ++i) {
        int rows;
        sj_error error;
        const sj_status status = run(queries[i], &rows, &error);
        if (status == SJ_OK || error.text[0] == '\0' ||
            (status != SJ_EPERM && strstr(error.text, "no such function") == NULL &&
             strstr(error.text, "may not be modified") == NULL)) {
            fail_msg("%s: %d, %s", queries[i], status, error.text);
        }
    }
}

static void two_statements_or_none_are_refused(void **state)
{
    (void)state;
    int rows;
    sj_error error;
    assert_int_equal(run("SELECT 1; SELECT 2", &rows, &error), SJ_EINVAL);
    assert_int_equal(run("  -- nothing\n", &rows, &error), SJ_EINVAL);
    assert_int_equal(run("SELEC 1", &rows, &error), SJ_EINVAL);
}

static void endless_recursion_ends_at_the_time_limit(void **state)
{
    (void)state;
    int rows;
    sj_error error;
    assert_int_equal(run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                         "SELECT max(i) FROM n",
                         &rows, &error),
                     SJ_ETIMEDOUT);
    assert_non_null(strstr(error.text, "300 ms"));
    /* the connection still works */
    assert_int_equal(run("SELECT 1", &rows, &error), SJ_OK);
}

static void huge_values_are_refused(void **state)
{
    (void)state;
    int rows;
    sj_error error;
    assert_int_equal(run("SELECT zeroblob(900000000)", &rows, &error), SJ_ELIMIT);
    assert_int_equal(run("SELECT hex(randomblob(900000))", &rows, &error), SJ_ELIMIT);
}

static void padding_beyond_the_limit_is_refused_before_it_is_written(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "SELECT printf('%.*c', 2000000000, 'x')",
        "SELECT format('%.2000000000c', 'x')",
        "SELECT printf('%*d', -2000000000, 1)",
        "SELECT printf('%d %s %-*.*lld', 1, 'a', 900000, 900000, 1)",
        "SELECT printf(replace(hex(zeroblob(100)), '00', '%.900000c'), 'x')",
    };
    int rows;
    sj_error error;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
        assert_int_equal(run(refused[i], &rows, &error), SJ_ELIMIT);
        assert_non_null(strstr(error.text, "widths and precisions"));
    }
    /* SQLite answers what fits, and only then there is a row */
    rows = 0;
    assert_int_equal(run("SELECT 1 WHERE printf('%5.2f|%-6s|%06d|%,d|%%|%Q|%*d|%.3c', 3.14159, "
                         "'ab', 42, 1234567, 'it''s', 4, 7, 'x') = "
                         "' 3.14|ab    |000042|1,234,567|%|''it''''s''|   7|xxx'",
                         &rows, &error),
                     SJ_OK);
    assert_int_equal(rows, 1);
    assert_int_equal(run("SELECT 1 WHERE printf(NULL) IS NULL AND format('%s', x'4142') = 'AB' "
                         "AND length(printf('%.*c', 1000, 'x')) = 1000",
                         &rows, &error),
                     SJ_OK);
    assert_int_equal(rows, 1);
}

/* Each statement would run for minutes to days, past any time limit. */
static void functions_of_text_are_refused_before_they_run_long(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT instr(x, substr(x, 1, 450000)) "
        "FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT replace(x, substr(x, 9), 'c') "
        "FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT trim(x, substr(x, 9)) FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT ltrim(x, substr(x, 9)) FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT rtrim(x, substr(x, 9)) FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT x GLOB "
        "replace(hex(zeroblob(450)), '0', 'a') FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT x LIKE "
        "replace(hex(zeroblob(450)), '0', '%') FROM t",
        "WITH t AS (SELECT printf('%.*c', 900000, 'a') AS x) SELECT json_patch(x, x) FROM t",
    };
    int rows;
    sj_error error;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
        assert_int_equal(run(refused[i], &rows, &error), SJ_ELIMIT);
        assert_non_null(strstr(error.text, "would take too long"));
    }
    /* SQLite answers short texts */
    rows = 0;
    assert_int_equal(
        run("SELECT 1 WHERE instr('abcd', 'cd') = 3 AND replace('aba', 'a', 'xy') = 'xybxy' AND "
            "trim('xxaxx', 'x') = 'a' AND ltrim('xax', 'x') = 'ax' AND rtrim('xax', 'x') = 'xa' "
            "AND 'Main' LIKE 'm%' AND NOT 'Main' GLOB 'm*' AND 'a%b' LIKE 'a!%b' ESCAPE '!' AND "
            "instr(NULL, 'a') IS NULL AND (NULL LIKE 'a') IS NULL AND "
            "json_patch('{\"a\":1}', '{\"b\":2}') = '{\"a\":1,\"b\":2}' AND printf() IS NULL",
            &rows, &error),
        SJ_OK);
    assert_int_equal(rows, 1);
    assert_int_equal(run("SELECT json_patch('{', '{}')", &rows, &error), SJ_EINVAL);
    assert_non_null(strstr(error.text, "malformed JSON"));
}

static void rows_beyond_the_limit_are_cut_and_reported(void **state)
{
    (void)state;
    int rows = 0;
    sj_error error;
    sj_sql_outcome outcome;
    assert_int_equal(
        sj_sql_guard_run(guard, "SELECT call_id FROM calls", count_rows, &rows, &outcome, &error),
        SJ_OK);
    assert_int_equal(rows, 50);
    assert_true(outcome.truncated);
    rows = 0;
    assert_int_equal(sj_sql_guard_run(guard, "SELECT call_id FROM calls LIMIT 50", count_rows,
                                      &rows, &outcome, &error),
                     SJ_OK);
    assert_false(outcome.truncated);
}

static void the_connection_is_free_again_after_the_guard(void **state)
{
    (void)state;
    static const char pragma[] = "PRAGMA user_version";
    const sj_sql_limits limits = {.time_ms = 60000, .heap_bytes = 128 << 20};
    const sqlite3_int64 former = sqlite3_hard_heap_limit64(-1);
    sj_error error = {0};
    sqlite3 *own = NULL;
    sj_sql_guard *second = NULL;
    assert_int_equal(sj_database_open_reader(path, &own, &error), SJ_OK);
    assert_int_equal(sj_sql_guard_new(own, &limits, &second, &error), SJ_OK);
    assert_int_equal(sqlite3_hard_heap_limit64(-1), 128 << 20);
    assert_int_not_equal(sqlite3_exec(own, pragma, NULL, NULL, NULL), SQLITE_OK);
    sj_sql_guard_free(second);
    assert_int_equal(sqlite3_hard_heap_limit64(-1), former);
    if (sqlite3_exec(own, pragma, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s", sqlite3_errmsg(own));
    }
    sqlite3_close(own);
}

/* Lets the processor go for longer than the limit of the query, once. */
static bool sleep_once(void *context)
{
    bool *slept = context;
    if (!*slept) {
        const struct timespec longer = {.tv_nsec = 150 * 1000000};
        nanosleep(&longer, NULL);
        *slept = true;
    }
    return true;
}

static void waiting_for_the_processor_is_not_counted(void **state)
{
    (void)state;
    const sj_sql_limits limits = {.processor_ms = 100};
    bool slept = false;
    int rows = 0;
    sj_error error = {0};
    sj_sql_outcome outcome;
    sqlite3 *own = NULL;
    sj_sql_guard *second = NULL;
    assert_int_equal(sj_database_open_reader(path, &own, &error), SJ_OK);
    assert_int_equal(sj_sql_guard_new(own, &limits, &second, &error), SJ_OK);
    sj_sql_guard_set_watch(second, sleep_once, &slept);
    assert_int_equal(sj_sql_guard_run(second,
                                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                                      "FROM n LIMIT 5000) SELECT max(i) FROM n",
                                      count_rows, &rows, &outcome, &error),
                     SJ_OK);
    assert_true(slept);
    assert_int_equal(sj_sql_guard_run(second,
                                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                                      "FROM n) SELECT max(i) FROM n",
                                      count_rows, &rows, &outcome, &error),
                     SJ_ETIMEDOUT);
    assert_non_null(strstr(error.text, "limit of 100 ms"));
    sj_sql_guard_free(second);
    sqlite3_close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_is_allowed),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(two_statements_or_none_are_refused),
        cmocka_unit_test(endless_recursion_ends_at_the_time_limit),
        cmocka_unit_test(huge_values_are_refused),
        cmocka_unit_test(padding_beyond_the_limit_is_refused_before_it_is_written),
        cmocka_unit_test(functions_of_text_are_refused_before_they_run_long),
        cmocka_unit_test(rows_beyond_the_limit_are_cut_and_reported),
        cmocka_unit_test(the_connection_is_free_again_after_the_guard),
        cmocka_unit_test(waiting_for_the_processor_is_not_counted),
    };
    return cmocka_run_group_tests(tests, open_guarded, close_guarded);
}
