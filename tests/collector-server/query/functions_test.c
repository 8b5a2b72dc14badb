#include "agent/objfile/demangle.h"
#include "collector-server/query/function_groups.h"
#include "collector-server/query/query.h"
#include "collector-server/query/tick_scale.h"
#include "collector-server/store/store.h"
#include "proto/callgraph/callgraph.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char path[] = "functions_test.db";
static sqlite3 *database;

static int open_trace(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 3,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 2000,
                               .block_events = 500,
                               .functions = 20,
                               .max_depth = 12,
                               .leave_open = true};
    make_trace(path, &shape, &made);
    free_trace(&made);
    sj_error error = {0};
    return sj_database_open_reader(path, &database, &error) != SJ_OK;
}

static int close_trace(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

static void durations_are_written_as_people_read_them(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "0 ns"},
                 {999, "999 ns"},
                 {1000, "1.00 us"},
                 {999999, "1.00 ms"},
                 {12345678, "12.3 ms"},
                 {-1500, "-1.50 us"},
                 {1000000000, "1.00 s"},
                 {59949000000, "59.9 s"},
                 {60000000000, "1 min 00 s"},
                 {3600000000000, "1 h 00 min"},
                 {INT64_MIN, "-2562047 h 47 min"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[SJ_DURATION_TEXT_BYTES];
        assert_string_equal(sj_format_duration(cases[i].ns, text), cases[i].text);
    }
}

static void sizes_are_written_as_people_read_them(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.0 KiB"},
                 {-1536, "-1.5 KiB"},
                 {5 << 20, "5.0 MiB"},
                 {INT64_C(3) << 30, "3.0 GiB"},
                 {INT64_MIN, "-8388608.0 TiB"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[SJ_BYTES_TEXT_BYTES];
        assert_string_equal(sj_format_bytes(cases[i].bytes, text), cases[i].text);
    }
}

static void tick_bounds_are_exact_at_every_clock(void **state)
{
    (void)state;
    static const int64_t clocks[][2] = {{10, 26}, {1, 1}, {1000, 1}, {1, 3}, {125, 3}, {7, 1000}};
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); ++i) {
        sj_tick_scale scale = {0};
        assert_true(sj_tick_scale_init(&scale, clocks[i][0], clocks[i][1]));
        uint64_t random = 1;
        for (int k = 0; k < 2000; ++k) {
            const uint64_t ticks = next_random(&random) << (k % 16);
            const int64_t ns = sj_ticks_to_ns(&scale, ticks);
            assert_int_equal(ns,
                             (int64_t)(ticks * (uint64_t)clocks[i][0] / (uint64_t)clocks[i][1]));
            const uint64_t least = sj_ns_to_ticks_ceil(&scale, ns);
            assert_true(least <= ticks && sj_ticks_to_ns(&scale, least) >= ns);
            assert_true(least == 0 || sj_ticks_to_ns(&scale, least - 1) < ns);
        }
    }
    sj_tick_scale scale;
    assert_false(sj_tick_scale_init(&scale, 0, 1));
    assert_false(sj_tick_scale_init(&scale, 1, -1));
}

static double number_of(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
    const double number = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static void assert_fails(const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ERROR);
    sqlite3_finalize(statement);
}

static void quantiles_are_nanoseconds_near_the_exact_ones(void **state)
{
    (void)state;
    const double exact =
        number_of("SELECT duration_ns FROM calls WHERE ending <> 'open' ORDER BY 1 "
                  "LIMIT 1 OFFSET (SELECT count(duration_ns) / 2 FROM calls)");
    const double merged = number_of("SELECT histogram_quantile(histogram_merge(histogram, "
                                    "session_id), 0.5) FROM call_paths");
    const double ticks = number_of("SELECT histogram_quantile(histogram_merge(histogram), 0.5, 1) "
                                   "FROM call_paths");
    assert_true(exact > 0);
    assert_true(merged > exact * 0.9 && merged < exact * 1.1);
    assert_true(ticks > exact * 0.94 && ticks < exact * 1.06);
}

static void wrong_arguments_of_histograms_are_reported(void **state)
{
    (void)state;
    assert_fails("SELECT histogram_quantile(x'ff00ff', 0.5)");
    assert_fails("SELECT histogram_quantile(histogram, 1.5) FROM call_paths");
    assert_fails("SELECT histogram_quantile(histogram, 0.5, 99) FROM call_paths");
    assert_int_equal(number_of("SELECT histogram_quantile(NULL, 0.5) IS NULL"), 1);
    assert_int_equal(
        number_of("SELECT count(*) FROM call_paths, json_each('[0, 0.01, 0.5, 0.95, 1]') WHERE "
                  "histogram_quantile(histogram, value, session_id, min_ns, max_ns) NOT BETWEEN "
                  "min_ns AND max_ns"),
        0);
    assert_int_equal(
        number_of("SELECT count(*) FROM call_paths WHERE histogram_quantile(histogram, 1, "
                  "session_id, min_ns, max_ns) <> max_ns OR histogram_quantile(histogram, 0, "
                  "session_id, min_ns, max_ns) <> min_ns"),
        0);
}

/* Compares with the exact answers of SQLite's own window functions. */
static void percentiles_of_any_values_are_near_the_exact_ones(void **state)
{
    (void)state;
    static const int percents[] = {1, 50, 90, 99};
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); ++i) {
        char sql[512];
        snprintf(
            sql, sizeof(sql),
            "SELECT max(abs(c.p - e.d) / (e.d + 1.0)) FROM (SELECT function_id, "
            "percentile(duration_ns, %d) AS p FROM calls GROUP BY 1) AS c JOIN (SELECT "
            "function_id, duration_ns AS d, row_number() OVER w - 1 AS r, count(*) OVER "
            "(PARTITION BY function_id) AS n FROM calls WHERE duration_ns IS NOT NULL WINDOW w "
            "AS (PARTITION BY function_id ORDER BY duration_ns)) AS e USING (function_id) "
            "WHERE e.r = max((%d * e.n + 99) / 100 - 1, 0)",
            percents[i], percents[i]);
        const double off = number_of(sql);
        assert_true(off < 0.035);
    }
    assert_int_equal(number_of("SELECT percentile(NULL, 50) IS NULL"), 1);
    assert_int_equal(number_of("SELECT percentile(value, 100) FROM json_each('[7, null, 3]')"), 7);
    assert_int_equal(number_of("SELECT percentile(value, 99) FROM json_each('[1000, 5, 1001]')"),
                     1001);
    assert_int_equal(number_of("SELECT percentile(value, 1) FROM json_each('[1000, 1003, 1001]')"),
                     1000);
    assert_int_equal(number_of("SELECT percentile(value, 50) FROM json_each('[1003, 1003]')"),
                     1003);
    assert_fails("SELECT percentile(1, 101)");
    assert_fails("SELECT percentile(1, 'x')");
    assert_fails("SELECT percentile(-1, 50)");
    assert_fails("SELECT histogram('abc')");
}

static void histograms_open_into_bins_that_add_up(void **state)
{
    (void)state;
    assert_int_equal(number_of("SELECT sum(h.count) - (SELECT sum(calls) FROM call_paths) FROM "
                               "call_paths AS s, histogram(s.histogram, s.session_id) AS h"),
                     0);
    assert_int_equal(number_of("SELECT count(*) FROM call_paths AS s JOIN histogram(s.histogram,"
                               " s.session_id) AS h WHERE h.low > s.max_ns OR h.high < s.min_ns - 1"
                               " OR h.low > h.high"),
                     0);
    assert_int_equal(number_of("SELECT sum(h.count) FROM (SELECT histogram(duration_ns) AS b FROM "
                               "calls) AS m, histogram(m.b) AS h") -
                         number_of("SELECT count(duration_ns) FROM calls"),
                     0);
    assert_int_equal(number_of("SELECT round(sum(share) * 1000) FROM histogram((SELECT histogram "
                               "FROM call_paths WHERE calls > 0 LIMIT 1))"),
                     1000);
    assert_int_equal(number_of("SELECT count(*) FROM histogram(NULL)"), 0);
    assert_fails("SELECT * FROM histogram(x'ff00ff')");
    assert_fails("SELECT h.* FROM call_paths AS s, histogram(s.histogram, 99) AS h");
}

static void symbols_become_names(void **state)
{
    (void)state;
    assert_int_equal(number_of("SELECT demangle('_ZN3foo3barEi') = 'foo::bar(int)'"), 1);
    assert_int_equal(number_of("SELECT demangle('_RNvC6_123foo3bar') LIKE '%foo::bar'"), 1);
    assert_int_equal(number_of("SELECT demangle('main') = 'main' AND demangle(NULL) IS NULL"), 1);
    /* Each parameter contains the previous one twice. This gives 2^39 names, cut at the limit. */
    assert_int_equal(
        number_of(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 35), "
            "m AS (SELECT '_Z1f1A1PIS_S_E' || group_concat('S0_IS' || ref || '_S' || ref || "
            "'_E', '') AS name FROM (SELECT substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', "
            "i + 1, 1) AS ref FROM n ORDER BY i)) "
            "SELECT length(demangle(name)) FROM m WHERE demangle(name) LIKE 'f(A, P<A, A>,%'"),
        SJ_DEMANGLE_MAX_BYTES - 1);
}

static void trees_are_depth_first_and_complete(void **state)
{
    (void)state;
    assert_int_equal(number_of("SELECT (SELECT count(*) FROM call_tree(1)) - (SELECT count(*) FROM "
                               "call_paths)"),
                     0);
    assert_int_equal(number_of("SELECT count(*) FROM (SELECT depth, lag(depth, 1, -1) OVER () AS p "
                               "FROM flame(1)) WHERE depth > p + 1"),
                     0);
    /* every path lies within its parent */
    assert_int_equal(number_of("WITH f AS MATERIALIZED (SELECT * FROM flame(1)) SELECT count(*) "
                               "FROM f AS c JOIN f AS p ON p.path_id = "
                               "c.parent_path_id WHERE c.left_ns < p.left_ns OR c.left_ns + "
                               "c.total_ns > p.left_ns + p.total_ns + 50"),
                     0);
    assert_int_equal(number_of("SELECT count(*) FROM call_tree(7)"), 0);
}

static void trees_count_open_calls(void **state)
{
    (void)state;
    assert_true(number_of("SELECT count(*) FROM open_calls") > 0);
    assert_int_equal(number_of("SELECT (SELECT sum(open_calls) FROM call_tree(1)) - (SELECT "
                               "count(*) FROM open_calls)"),
                     0);
    assert_int_equal(number_of("WITH t AS MATERIALIZED (SELECT function_id, depth, sum(open_calls) "
                               "AS n FROM call_tree(1) GROUP BY 1, 2 HAVING n > 0) SELECT count(*) "
                               "FROM t FULL JOIN (SELECT function_id, depth, count(*) AS n FROM "
                               "open_calls GROUP BY 1, 2) AS o USING (function_id, depth) WHERE "
                               "t.n IS NOT o.n"),
                     0);
    /* the callees of an open call lie below it */
    assert_int_equal(number_of("WITH t AS MATERIALIZED (SELECT * FROM call_tree(1)) SELECT count(*)"
                               " FROM t AS c JOIN t AS p ON p.path_id = c.parent_path_id WHERE "
                               "c.open_calls > p.open_calls"),
                     0);
    assert_int_equal(
        number_of("SELECT count(*) FROM call_tree(1) WHERE calls = 0 AND open_calls = 0"), 0);
}

/* Adds A called by B called by A and so on, with `paths` paths and `open` open calls. */
static void add_recursion(int paths, int open)
{
    char sql[1024];
    sqlite3 *writer = NULL;
    snprintf(sql, sizeof(sql),
             "INSERT INTO streams (stream_id, session_id, number) VALUES (90, 9, 1);"
             "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < %d)"
             "INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id, depth,"
             " recursive, calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted, histogram,"
             " state, rare) SELECT (9 << 32) + n, 9, nullif((9 << 32) + n - 1, 9 << 32), "
             "1 + (n - 1) %% 2, n - 1, 0, 0, 0, 0, NULL, NULL, 0, 0, NULL, x'', 0 FROM t;"
             "WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n < %d - 1)"
             "INSERT INTO open_calls SELECT 90, n, 1 + n %% 2, n, 0, 0 FROM t;",
             paths, open);
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(writer);
}

static void remove_recursion(void)
{
    sqlite3 *writer = NULL;
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer,
                                  "DELETE FROM open_calls WHERE stream_id = 90;"
                                  "DELETE FROM call_paths WHERE session_id = 9;"
                                  "DELETE FROM streams WHERE stream_id = 90;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(writer);
}

static void open_calls_of_folded_recursion_are_found(void **state)
{
    (void)state;
    enum { DEEPEST = SJ_PATH_FOLD_DEPTH };
    add_recursion(DEEPEST, DEEPEST + 3);
    assert_int_equal(number_of("SELECT sum(open_calls) FROM call_tree(9)"), DEEPEST + 3);
    assert_int_equal(number_of("SELECT group_concat(open_calls, '') FROM (SELECT * FROM "
                               "call_tree(9) WHERE depth >= 1020)"),
                     1132);
    remove_recursion();
}

static void open_calls_of_unwritten_paths_are_at_no_other_path(void **state)
{
    (void)state;
    add_recursion(3, 5);
    assert_int_equal(number_of("SELECT group_concat(open_calls, '') FROM call_tree(9)"), 111);
    remove_recursion();
}

enum { NUMBERS_A_BATCH = 37 };

typedef struct number_rows {
    uint64_t random, count, at;
    uint32_t entries[NUMBERS_A_BATCH];
    int64_t values[NUMBERS_A_BATCH];
} number_rows;

static int give_numbers(void *context, sj_group_batch *batch)
{
    static const int64_t functions[] = {500, 4, 6, 5}; /* most calls belong to the first function */
    number_rows *rows = context;
    if (rows->at == rows->count) {
        return SQLITE_DONE;
    }
    *batch = (sj_group_batch){.entries = rows->entries,
                              .function_ids = functions,
                              .function_count = 4,
                              .columns = {rows->values}};
    while (batch->row_count < NUMBERS_A_BATCH && rows->at < rows->count) {
        const uint64_t number = next_random(&rows->random) % 7;
        rows->entries[batch->row_count] = number < 4 ? 0 : (uint32_t)number - 3;
        rows->values[batch->row_count++] = (int64_t)(rows->at++ * 150); /* narrow and wide values */
    }
    return SQLITE_ROW;
}

static void groups_are_complete_when_memory_is_too_small(void **state)
{
    (void)state;
    static const size_t limits[] = {1, 700, 5000, 40000, 0};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); ++i) {
        number_rows rows = {.count = 30000, .random = 11};
        sj_function_groups groups = {.columns = {3},
                                     .column_count = 1,
                                     .limit_bytes = limits[i],
                                     .give = give_numbers,
                                     .context = &rows};
        assert_int_equal(sj_function_groups_start(&groups), SQLITE_OK);
        int64_t last = INT64_MIN;
        int64_t sum = 0;
        int64_t of = -1;
        int64_t before = 0;
        uint64_t count = 0;
        for (; !groups.end; ++count) {
            assert_true(sj_function_groups_value(&groups, -1) >= last);
            last = sj_function_groups_value(&groups, -1);
            sum += sj_function_groups_value(&groups, 3);
            /* the order within a function is the order of arrival */
            assert_true(groups.current_id != of || sj_function_groups_value(&groups, 3) > before);
            of = groups.current_id;
            before = sj_function_groups_value(&groups, 3);
            assert_int_equal(sj_function_groups_next(&groups), SQLITE_OK);
        }
        assert_int_equal(count, rows.count);
        assert_int_equal(sum, INT64_C(150) * 30000 * 29999 / 2);
        sj_function_groups_deinit(&groups);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_written_as_people_read_them),
        cmocka_unit_test(sizes_are_written_as_people_read_them),
        cmocka_unit_test(tick_bounds_are_exact_at_every_clock),
        cmocka_unit_test(quantiles_are_nanoseconds_near_the_exact_ones),
        cmocka_unit_test(wrong_arguments_of_histograms_are_reported),
        cmocka_unit_test(percentiles_of_any_values_are_near_the_exact_ones),
        cmocka_unit_test(histograms_open_into_bins_that_add_up),
        cmocka_unit_test(symbols_become_names),
        cmocka_unit_test(trees_are_depth_first_and_complete),
        cmocka_unit_test(trees_count_open_calls),
        cmocka_unit_test(open_calls_of_folded_recursion_are_found),
        cmocka_unit_test(open_calls_of_unwritten_paths_are_at_no_other_path),
        cmocka_unit_test(groups_are_complete_when_memory_is_too_small),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
