#include "collector-server/query/block_scan.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "tests/collector-server/query/naive_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats of queries are in tables here  \
                                                      */

enum { RANDOM_QUERIES = 120, LONG_RANDOM_QUERIES = 400 };

static const char path[] = "calls_table_test.db";

static int open_trace(void **state)
{
    (void)state;
    return open_naive_calls(path);
}

static void print_row(const char *who, sqlite3_stmt *row)
{
    fprintf(stderr, "%s:", who);
    for (int i = 0; i < sqlite3_column_count(row); ++i) {
        fprintf(stderr, " %s", (const char *)sqlite3_column_text(row, i));
    }
    fprintf(stderr, "\n");
}

/* Checks that both tables give the same rows in the same order. Returns their number. */
static int64_t compare(const char *format, const char *from)
{
    char ours[1000];
    char theirs[1000];
    snprintf(ours, sizeof(ours), format, "calls", from);
    snprintf(theirs, sizeof(theirs), format, "naive", from);
    sqlite3_stmt *left = prepare(ours);
    sqlite3_stmt *right = prepare(theirs);
    int64_t rows = 0;
    for (;; ++rows) {
        const int a = sqlite3_step(left);
        const int b = sqlite3_step(right);
        bool same = a == b;
        for (int i = 0; same && a == SQLITE_ROW && i < sqlite3_column_count(left); ++i) {
            const char *x = (const char *)sqlite3_column_text(left, i);
            const char *y = (const char *)sqlite3_column_text(right, i);
            same = x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
        }
        if (!same) {
            print_row("calls", left);
            print_row("naive", right);
            fail_msg("row %lld differs (%d, %d: %s): %s", (long long)rows, a, b,
                     sqlite3_errmsg(database), ours);
        }
        if (a != SQLITE_ROW) {
            break;
        }
    }
    sqlite3_finalize(left);
    sqlite3_finalize(right);
    return rows;
}

static void every_call_is_one_row_with_every_column_true(void **state)
{
    (void)state;
    assert_int_equal(compare("SELECT * FROM %s %s ORDER BY call_id", ""), made.count);
    assert_true(number_of("SELECT count(*) FROM naive WHERE end_ns IS NULL") > 4);
    assert_true(made.blocks > 80);
}

static void counting_reads_no_columns_and_counts_all(void **state)
{
    (void)state;
    assert_int_equal(number_of("SELECT count(*) FROM calls"), made.count);
    assert_int_equal(number_of("SELECT count(*) FROM calls WHERE session_id = 1"), made.count / 2);
    assert_int_equal(number_of("SELECT count(*) FROM calls WHERE session_id = 77"), 0);
}

static void add_condition(char *where, size_t size, uint64_t *random)
{
    static const char *const columns[] = {
        "call_id",        "session_id",         "stream_id",
        "thread_id",      "start_ns",           "function_id",
        "depth",          "duration_ns",        "end_ns",
        "self_ns",        "parent_id",          "caller_function_id",
        "tail_caller_id", "physical_parent_id", "physical_duration_ns"};
    static const char *const operators[] = {"=", "<", "<=", ">", ">="};
    const char *column = columns[next_random(random) % 15];
    const char *op = operators[next_random(random) % 5];
    const char *suffix = next_random(random) % 12 == 0 ? " + 0.5" : "";
    const size_t used = strlen(where);
    const uint64_t row = next_random(random) % made.count;
    char value[200];
    switch (next_random(random) % 16) {
    case 0:
        snprintf(value, sizeof(value), "NULL");
        break;
    case 1:
        snprintf(value, sizeof(value), "'text'");
        break;
    case 2:
        snprintf(value, sizeof(value), "%s", next_random(random) % 2 == 0 ? "1e300" : "-1e300");
        break;
    default:
        /* uses a value that occurs, so that boundaries are tested */
        snprintf(value, sizeof(value), "(SELECT %s FROM naive WHERE rowid = %llu)%s", column,
                 (unsigned long long)row + 1, suffix);
    }
    snprintf(where + used, size - used, " %s %s %s %s", used == 0 ? "WHERE" : "AND", column, op,
             value);
}

static void random_conditions_answer_like_a_full_scan(void **state)
{
    (void)state;
    uint64_t random = 42;
    int64_t rows = 0;
    const int count = getenv("SJ_LONG") != NULL ? LONG_RANDOM_QUERIES : RANDOM_QUERIES;
    for (int i = 0; i < count; ++i) {
        char where[900] = "";
        const uint64_t conditions = 1 + next_random(&random) % 3;
        for (uint64_t k = 0; k < conditions; ++k) {
            add_condition(where, sizeof(where), &random);
        }
        static const char *const orders[] = {
            "SELECT * FROM %s %s ORDER BY call_id",
            "SELECT call_id, ending FROM %s %s ORDER BY start_ns, call_id",
            "SELECT * FROM %s %s ORDER BY duration_ns DESC, call_id",
        };
        rows += compare(orders[i % 3], where);
    }
    assert_true(rows > 1000); /* the conditions select enough rows */
}

static void groups_and_orders_equal_those_of_sqlite(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT function_id, count(*), sum(duration_ns), min(self_ns) FROM %s %s GROUP BY "
        "function_id ORDER BY function_id",
        "SELECT DISTINCT function_id FROM %s %s ORDER BY function_id",
        "SELECT DISTINCT function_id FROM %s %s WHERE depth > 3 ORDER BY 1",
        "SELECT DISTINCT function_id FROM %s %s WHERE start_ns > 3000 AND start_ns %% 7 = 0 "
        "ORDER BY function_id",
        "SELECT count(*), sum(duration_ns) FROM %s %s WHERE function_id IN "
        "(1003, 100002, NULL, 'x', 1004.0, 1003.5)",
        "SELECT call_id FROM %s %s WHERE function_id IN (1003, 100002) AND function_id > 1003",
        "SELECT function_id, count(*), max(end_ns) FROM %s %s WHERE function_id IN "
        "(SELECT function_id FROM functions WHERE function_id %% 3 = 0) AND session_id = 2 "
        "GROUP BY function_id ORDER BY 1",
        "SELECT call_id FROM %s %s WHERE function_id IN (1003, 100002) ORDER BY duration_ns DESC, "
        "call_id LIMIT 9",
        "SELECT call_id FROM %s %s ORDER BY call_id LIMIT 50 OFFSET 777",
        "SELECT call_id, self_ns FROM %s %s ORDER BY call_id LIMIT -1 OFFSET 5000",
        "SELECT call_id FROM %s %s WHERE function_id IN (1003, 1004) ORDER BY call_id LIMIT 20 "
        "OFFSET 30",
        "SELECT call_id FROM %s %s WHERE depth > 2 AND self_ns > 3 ORDER BY call_id LIMIT 20 "
        "OFFSET 30",
        "SELECT call_id FROM %s %s ORDER BY start_ns, call_id LIMIT 20 OFFSET 30",
        "SELECT function_id, max(start_ns) FROM %s %s WHERE depth > 3 GROUP BY function_id "
        "ORDER BY 2 DESC, 1",
        "SELECT count(DISTINCT function_id), count(DISTINCT depth) FROM %s %s",
        "SELECT call_id FROM %s %s WHERE stream_id = 11 ORDER BY start_ns, call_id",
        "SELECT call_id FROM %s %s ORDER BY call_id DESC LIMIT 100",
        "SELECT ending, count(*) FROM %s %s GROUP BY ending ORDER BY ending",
        "SELECT stream_id, count(*) FROM %s %s GROUP BY stream_id ORDER BY stream_id",
        "SELECT call_id FROM %s %s WHERE function_id IN (1003, 100002) OR depth = 2 ORDER BY 1",
        "SELECT function_id, call_id FROM %s %s ORDER BY function_id, call_id",
        "SELECT duration_ns FROM %s %s ORDER BY duration_ns DESC LIMIT 40",
        "SELECT max(duration_ns), min(duration_ns) FROM %s %s",
        "SELECT depth, duration_ns, ending, call_id FROM %s %s WHERE depth > 2 "
        "ORDER BY duration_ns DESC, call_id LIMIT 200 OFFSET 30",
    };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); ++i) {
        assert_true(compare(queries[i], "") > 0);
    }
}

/* Checks that the query plan of `calls` for a statement contains `part`. */
static void assert_plan(const char *sql, const char *part)
{
    char *explained = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    sqlite3_stmt *plan = prepare(explained);
    assert_int_equal(sqlite3_step(plan), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(plan, 3);
    if (strstr(text, part) == NULL) {
        fail_msg("%s: %s, not %s", sql, text, part);
    }
    sqlite3_finalize(plan);
    sqlite3_free(explained);
}

static void sets_offsets_and_distinct_are_pushed_into_the_plan(void **state)
{
    (void)state;
    assert_plan("SELECT count(*) FROM calls WHERE function_id IN (1003, 1004)", ":e(");
    assert_plan("SELECT count(*) FROM calls WHERE function_id IN (1003, 4) AND function_id = 4",
                ":e=e=");
    assert_plan("SELECT call_id FROM calls WHERE session_id = 1 LIMIT 5 OFFSET 9", ":b=z+");
    assert_plan("SELECT DISTINCT function_id FROM calls", "1342177296:"); /* bits 4, 28 and 30 */
    assert_plan("SELECT DISTINCT function_id FROM calls WHERE depth > 1", "268435536:g>");
    assert_int_equal(number_of("SELECT count(*) FROM (SELECT call_id FROM calls WHERE call_id = "
                               "(SELECT max(call_id) FROM naive) LIMIT 1 OFFSET 1)"),
                     0);
    assert_int_equal(number_of("SELECT count(*) FROM (SELECT 1 FROM calls LIMIT 7 OFFSET 3)"), 7);
    assert_int_equal(number_of("SELECT count(*) FROM (SELECT call_id FROM calls WHERE parent_id = "
                               "(SELECT parent_id FROM naive WHERE parent_id IS NOT NULL GROUP BY "
                               "1 ORDER BY count(*) DESC, 1 LIMIT 1) LIMIT 100 OFFSET 1)") +
                         1,
                     number_of("SELECT count(*) AS n FROM naive WHERE parent_id IS NOT NULL "
                               "GROUP BY parent_id ORDER BY 1 DESC LIMIT 1"));
}

static void call_aggregate_equals_the_sum_of_its_calls(void **state)
{
    (void)state;
    static const char *const windows[] = {"1", "2", "1, 3000, 9000", "2, 0, 1", "1, 500, 700, 12"};
    static const char *const conditions[] = {
        "session_id = 1", "session_id = 2",
        "session_id = 1 AND start_ns >= 3000 AND start_ns < 9000",
        "session_id = 2 AND start_ns >= 0 AND start_ns < 1",
        "session_id = 1 AND start_ns >= 500 AND start_ns < 700 AND stream_id = 12"};
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); ++i) {
        char sql[1000];
        snprintf(sql, sizeof(sql),
                 "SELECT count(*) FROM (SELECT a.*, n.* FROM call_aggregate(%s) AS a FULL JOIN "
                 "(SELECT function_id AS f, count(duration_ns) AS c, coalesce(sum(duration_ns), 0) "
                 "AS d, coalesce(sum(self_ns), 0) AS s, count(*) - count(duration_ns) AS o FROM "
                 "naive WHERE %s GROUP BY 1) AS n ON n.f = a.function_id WHERE a.calls IS NOT n.c "
                 "OR a.open IS NOT n.o OR abs(a.duration_ns - n.d) > n.c + 1 OR "
                 "abs(a.self_ns - n.s) > n.c + 1)",
                 windows[i], conditions[i]);
        assert_int_equal(number_of(sql), 0);
    }
    /* recursion counts once, as in the call graph */
    assert_int_equal(number_of("SELECT count(*) FROM call_aggregate(1) AS a JOIN function_stats AS "
                               "f ON f.session_id = 1 AND f.function_id = a.function_id WHERE "
                               "a.calls <> f.calls OR abs(a.total_ns - f.total_ns) > a.calls"),
                     0);
    assert_true(number_of("SELECT count(*) FROM call_aggregate(1) WHERE total_ns < duration_ns") >
                0);
}

static void descendants_and_ancestors_follow_the_tree(void **state)
{
    (void)state;
    assert_int_equal(
        number_of("WITH RECURSIVE below(id) AS (SELECT call_id FROM naive WHERE parent_id = "
                  "(SELECT call_id FROM naive WHERE rowid = 2) UNION ALL SELECT n.call_id FROM "
                  "naive AS n JOIN below ON n.parent_id = below.id) SELECT count(*) - (SELECT "
                  "count(*) FROM descendants((SELECT call_id FROM naive WHERE rowid = 2))) FROM "
                  "below"),
        0);
    assert_int_equal(number_of("SELECT count(*) FROM naive AS n WHERE n.rowid % 97 = 0 AND n.depth "
                               "<> (SELECT count(*) FROM ancestors(n.call_id))"),
                     0);
    assert_int_equal(number_of("SELECT count(*) FROM ancestors(5)"), 0);
}

static void a_corrupt_block_is_named_and_the_rest_is_read(void **state)
{
    (void)state;
    static const char damaged[] = "calls_table_damaged.db";
    trace copy;
    const trace_shape shape = {.seed = 9,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 1000,
                               .block_events = 100,
                               .functions = 10,
                               .max_depth = 10,
                               .keep_calls = true};
    make_trace(damaged, &shape, &copy);
    sqlite3 *writer;
    assert_int_equal(sqlite3_open(damaged, &writer), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(writer,
                     "UPDATE blocks SET data = CAST(substr(data, 1, 150) || x'a5' || substr(data, "
                     "152) AS BLOB) "
                     "WHERE block_id = 3",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(writer);
    sqlite3 *whole = database;
    sj_error error;
    assert_int_equal(sj_database_open_reader(damaged, &database, &error), SJ_OK);
    const int64_t lost = number_of("SELECT call_count FROM blocks WHERE block_id = 3");
    assert_true(lost > 0);
    assert_int_equal(number_of("SELECT count(call_id) FROM calls"), (int64_t)copy.count - lost);
    char *warnings = sj_query_read_warnings(database);
    assert_non_null(warnings);
    assert_non_null(strstr(warnings, "block 3 cannot be read"));
    sqlite3_free(warnings);
    assert_null(sj_query_read_warnings(database));
    sqlite3_close(database);
    database = whole;
    free_trace(&copy);
    remove(damaged);
}

/* Zeroes the root page of an index. */
static void damage_index(const char *file, const char *index)
{
    enum { PAGE_BYTES = 16384 };
    static const char zeros[PAGE_BYTES];
    char sql[200];
    sqlite3_stmt *row = NULL;
    sqlite3 *writer = NULL;
    assert_int_equal(sqlite3_open(file, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL),
                     SQLITE_OK);
    snprintf(sql, sizeof(sql), "SELECT (rootpage - 1) * %d FROM sqlite_schema WHERE name = '%s'",
             (int)PAGE_BYTES, index);
    assert_int_equal(sqlite3_prepare_v2(writer, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const long at = (long)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(writer);
    FILE *bytes = fopen(file, "r+b");
    assert_non_null(bytes);
    assert_int_equal(fseek(bytes, at, SEEK_SET), 0);
    assert_int_equal(fwrite(zeros, 1, sizeof(zeros), bytes), sizeof(zeros));
    fclose(bytes);
}

/* SQLite's own error is not taken for a block whose events contradict each other. Such a block is
 * left out, and here no warning would name it. */
static void a_damaged_page_ends_the_query(void **state)
{
    (void)state;
    static const char damaged[] = "calls_table_damaged.db";
    trace copy;
    const trace_shape shape = {.seed = 9,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 1000,
                               .block_events = 100,
                               .functions = 10,
                               .max_depth = 10,
                               .keep_calls = true};
    make_trace(damaged, &shape, &copy);
    damage_index(damaged, "blocks_late");
    sqlite3 *whole = database;
    sj_error error;
    assert_int_equal(sj_database_open_reader(damaged, &database, &error), SJ_OK);
    sqlite3_stmt *row = prepare("SELECT count(end_ns) FROM calls");
    assert_int_equal(sqlite3_step(row) & 0xff, SQLITE_CORRUPT);
    sqlite3_finalize(row);
    sqlite3_close(database);
    database = whole;
    free_trace(&copy);
    remove(damaged);
}

static void calls_cannot_be_written(void **state)
{
    (void)state;
    assert_int_not_equal(sqlite3_exec(database, "DELETE FROM calls", NULL, NULL, NULL), SQLITE_OK);
}

static void a_range_is_found_without_a_walk_through_the_stream(void **state)
{
    (void)state;
    sj_query_state query = {.database = database};
    sj_block_scan scan;
    assert_int_equal(sj_block_scan_open(&scan, &query), SQLITE_OK);
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(scan.bounds));
    sqlite3_stmt *plan = prepare(explain);
    int searches = 0;
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        if (strncmp(step, "SEARCH", 6) == 0) {
            /* first_call or first_ticks bounds the search */
            assert_non_null(strstr(step, "AND first_"));
            ++searches;
        }
    }
    assert_int_equal(searches, 5);
    sqlite3_finalize(plan);
    sqlite3_free(explain);
    sj_block_scan_close(&scan);
    sj_block_decoder_free(query.idle_decoder);
}

/* Runs both statements, which must give the same rows in the same order. Returns their number. */
static int64_t same_rows(const char *left, const char *right)
{
    sqlite3_stmt *a = prepare(left);
    sqlite3_stmt *b = prepare(right);
    int64_t rows = 0;
    for (;; ++rows) {
        const int x = sqlite3_step(a);
        bool same = x == sqlite3_step(b);
        for (int i = 0; same && x == SQLITE_ROW && i < sqlite3_column_count(a); ++i) {
            const char *one = (const char *)sqlite3_column_text(a, i);
            const char *other = (const char *)sqlite3_column_text(b, i);
            same = one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
        }
        if (!same) {
            print_row("table", a);
            print_row("naive", b);
            fail_msg("row %lld differs: %s", (long long)rows, left);
        }
        if (x != SQLITE_ROW) {
            break;
        }
    }
    sqlite3_finalize(a);
    sqlite3_finalize(b);
    return rows;
}

#define LAST "9223372036854775807"

static void table_functions_over_calls_equal_joins(void **state)
{
    (void)state;
    static const char outer[] = "SELECT function_id FROM naive WHERE session_id = 1 AND depth < 6 "
                                "GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    static const char inner[] = "SELECT function_id FROM naive WHERE session_id = 1 AND depth > 6 "
                                "GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    char left[1500];
    char right[1500];
    snprintf(left, sizeof(left),
             "SELECT call_id, duration_ns, inner_calls, first_call_id, first_after_ns, longest_ns "
             "FROM contains(1, (%s), (%s)) ORDER BY call_id",
             outer, inner);
    snprintf(right, sizeof(right),
             "SELECT o.call_id, o.duration_ns, count(*), min(i.call_id), min(i.start_ns) - "
             "o.start_ns, coalesce(max(i.duration_ns), 0) FROM naive AS o JOIN naive AS i ON "
             "i.stream_id = o.stream_id AND i.call_id > o.call_id AND i.depth > o.depth AND NOT "
             "EXISTS (SELECT 1 FROM naive AS m WHERE m.stream_id = o.stream_id AND m.call_id > "
             "o.call_id AND m.call_id <= i.call_id AND m.depth <= o.depth) WHERE o.session_id = 1 "
             "AND o.function_id = (%s) AND i.function_id = (%s) GROUP BY o.call_id "
             "ORDER BY o.call_id",
             outer, inner);
    assert_true(same_rows(left, right) > 10);
    snprintf(left, sizeof(left),
             "SELECT a_call_id, b_call_id, from_ns, coalesce(to_ns, " LAST ") FROM "
             "intervals_intersect(1, (%s), (%s)) ORDER BY 1, 2",
             outer, inner);
    snprintf(
        right, sizeof(right),
        "SELECT a.call_id, b.call_id, max(a.start_ns, b.start_ns), min(coalesce(a.end_ns, " LAST
        "), coalesce(b.end_ns, " LAST ")) FROM naive AS a JOIN naive AS b ON "
        "a.session_id = 1 AND b.session_id = 1 AND a.call_id <> b.call_id AND "
        "CASE WHEN a.start_ns <= b.start_ns THEN b.start_ns < coalesce(a.end_ns, " LAST
        ") ELSE a.start_ns < coalesce(b.end_ns, " LAST
        ") END WHERE a.function_id = (%s) AND b.function_id = (%s) ORDER BY 1, 2",
        outer, inner);
    assert_true(same_rows(left, right) > 10);
    snprintf(left, sizeof(left),
             "SELECT max(running), sum(running * (to_ns - from_ns)) FROM concurrency(1, (%s)) "
             "WHERE to_ns IS NOT NULL",
             inner);
    snprintf(
        right, sizeof(right),
        "SELECT max(n), (SELECT sum(min(coalesce(end_ns, e), e) - start_ns) FROM naive, "
        "(SELECT max(max(start_ns), max(end_ns)) AS e FROM naive WHERE session_id = 1 AND "
        "function_id = (%s)) WHERE session_id = 1 AND function_id = (%s)) FROM (SELECT (SELECT "
        "count(*) FROM naive AS o WHERE o.session_id = 1 AND o.function_id = c.function_id AND "
        "o.start_ns <= c.start_ns AND coalesce(o.end_ns, " LAST
        ") > c.start_ns) AS n FROM naive AS c WHERE c.session_id = 1 AND c.function_id = (%s))",
        inner, inner, inner);
    assert_int_equal(same_rows(left, right), 1);
    assert_true(same_rows("SELECT n.call_id, s.call_id FROM naive AS n CROSS JOIN "
                          "siblings(n.call_id) AS s WHERE n.rowid % 97 = 5 ORDER BY 1, 2",
                          "SELECT n.call_id, s.call_id FROM naive AS n JOIN naive AS s ON "
                          "s.parent_id = n.parent_id OR (s.parent_id IS NULL AND n.parent_id IS "
                          "NULL AND s.stream_id = n.stream_id) WHERE n.rowid % 97 = 5 "
                          "ORDER BY 1, 2") > 60);
    assert_true(same_rows("SELECT s.call_id FROM naive AS n CROSS JOIN sequence(n.call_id, "
                          "n.call_id + 40) AS s WHERE n.rowid = 300 ORDER BY 1",
                          "SELECT s.call_id FROM naive AS n JOIN naive AS b ON b.call_id = "
                          "n.call_id + 40 JOIN naive AS s ON s.session_id = n.session_id AND "
                          "(s.stream_id = n.stream_id AND s.call_id > n.call_id AND s.call_id < "
                          "b.call_id OR s.stream_id <> n.stream_id AND s.start_ns BETWEEN "
                          "n.start_ns AND b.start_ns) WHERE n.rowid = 300 ORDER BY 1") >= 39);
    assert_int_equal(number_of("SELECT count(*) FROM contains(1, 'no such function', 5)"), 0);
    assert_int_equal(number_of("SELECT count(*) FROM siblings(NULL)"), 0);
}

/* Only calls that were entered in the window count. */
static void table_functions_over_calls_accept_a_time_window(void **state)
{
    (void)state;
    static const char outer[] = "SELECT function_id FROM naive WHERE session_id = 1 AND depth < 6 "
                                "GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    static const char inner[] = "SELECT function_id FROM naive WHERE session_id = 1 AND depth > 6 "
                                "GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    const int64_t first = number_of("SELECT min(start_ns) FROM naive WHERE session_id = 1");
    const int64_t last = number_of("SELECT max(start_ns) FROM naive WHERE session_id = 1");
    int64_t rows = 0;
    for (int i = 0; i < 4; ++i) {
        const long long from = (long long)(first + (last - first) / 5 * i);
        const long long to = (long long)(from + (last - first) / (2 + 3 * i));
        char left[1500];
        char right[1500];
        snprintf(left, sizeof(left),
                 "SELECT call_id, inner_calls, inner_ns, first_call_id, longest_call_id FROM "
                 "contains(1, (%s), (%s), %lld, %lld) ORDER BY call_id",
                 outer, inner, from, to);
        snprintf(right, sizeof(right),
                 "SELECT c.call_id, c.inner_calls, c.inner_ns, c.first_call_id, c.longest_call_id "
                 "FROM contains(1, (%s), (%s)) AS c JOIN naive AS n USING (call_id) WHERE "
                 "n.start_ns BETWEEN %lld AND %lld ORDER BY call_id",
                 outer, inner, from, to);
        rows += same_rows(left, right);
        snprintf(left, sizeof(left),
                 "SELECT sum(running * (to_ns - from_ns)) FROM "
                 "concurrency(1, (%s), %lld, %lld) WHERE to_ns IS NOT NULL",
                 inner, from, to);
        snprintf(right, sizeof(right),
                 "SELECT sum(min(coalesce(end_ns, e), e) - start_ns) FROM naive, "
                 "(SELECT max(max(start_ns), max(end_ns)) AS e FROM naive WHERE session_id = 1 AND "
                 "function_id = (%s) AND start_ns BETWEEN %lld AND %lld) WHERE session_id = 1 AND "
                 "function_id = (%s) AND start_ns BETWEEN %lld AND %lld",
                 inner, from, to, inner, from, to);
        assert_int_equal(same_rows(left, right), 1);
    }
    assert_true(rows > 10);
    assert_int_equal(number_of("SELECT count(*) FROM concurrency(1, 'no such function')"), 0);
}

static int64_t blocks_read(const sj_scan_filter *filter)
{
    sj_query_state query = {.database = database};
    sj_block_scan scan;
    int64_t blocks = 0;
    assert_int_equal(sj_block_scan_open(&scan, &query), SQLITE_OK);
    assert_int_equal(sj_block_scan_start(&scan, filter, SJ_SCAN_TIMES), SQLITE_OK);
    while (sj_block_scan_next(&scan) == SQLITE_ROW) {
        ++blocks;
    }
    sj_block_scan_close(&scan);
    sj_block_decoder_free(query.idle_decoder);
    return blocks;
}

static void calls_that_overlap_a_moment_need_few_blocks(void **state)
{
    (void)state;
    const int64_t all = number_of("SELECT count(*) FROM blocks WHERE kind = 1 AND call_count > 0");
    const int64_t moment = number_of("SELECT start_ns FROM naive WHERE rowid = 700");
    sj_scan_filter filter = sj_scan_everything;
    filter.ended = true;
    filter.first_end_ns = filter.last_start_ns = moment;
    /* reads, in each of four streams, the block of that time, its neighbour, and those of open
     * calls */
    const int64_t most = 4 * (2 + 30);
    assert_true(blocks_read(&filter) <= most && blocks_read(&filter) < all);
    char *sql = sqlite3_mprintf("SELECT count(*) FROM calls WHERE start_ns <= %lld AND end_ns >= "
                                "%lld UNION ALL SELECT count(*) FROM naive WHERE start_ns <= %lld "
                                "AND end_ns >= %lld",
                                moment, moment, moment, moment);
    sqlite3_stmt *counts = prepare(sql);
    assert_int_equal(sqlite3_step(counts), SQLITE_ROW);
    const int64_t found = sqlite3_column_int64(counts, 0);
    assert_true(found > 4);
    assert_int_equal(sqlite3_step(counts), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(counts, 0), found);
    sqlite3_finalize(counts);
    sqlite3_free(sql);
}

typedef struct long_walk {
    int64_t blocks, outlined, rows; /* rows: calls that last at least as long as asked */
} long_walk;

static long_walk walk_long_calls(int64_t min_ns, bool takes_outlines)
{
    sj_query_state query = {.database = database};
    sj_block_scan scan;
    sj_scan_filter filter = sj_scan_everything;
    long_walk seen = {0};
    filter.ended = true;
    filter.min_duration_ns = min_ns;
    assert_int_equal(sj_block_scan_open(&scan, &query), SQLITE_OK);
    scan.takes_outlines = takes_outlines;
    assert_int_equal(sj_block_scan_start(&scan, &filter, SJ_SCAN_TIMES), SQLITE_OK);
    while (sj_block_scan_next(&scan) == SQLITE_ROW) {
        assert_int_equal(sj_block_scan_rows(&scan, true), SQLITE_OK);
        ++seen.blocks;
        seen.outlined += scan.outlined; /* blocks whose rows came from an outline */
        for (size_t i = 0; i < scan.rows.count; ++i) {
            seen.rows += scan.rows.endings[i] != SJ_ENDING_OPEN &&
                         sj_scan_ns(&scan.session, scan.rows.ends[i]) -
                                 sj_scan_ns(&scan.session, scan.rows.starts[i]) >=
                             min_ns;
        }
    }
    sj_block_scan_close(&scan);
    sj_block_decoder_free(query.idle_decoder);
    return seen;
}

static void long_calls_come_from_outlines(void **state)
{
    (void)state;
    assert_true(made.outlines > made.blocks / 3);
    static const char *const columns[] = {"*", "call_id, parent_id, self_ns, flags, depth",
                                          "function_id, caller_function_id, ending, end_ns"};
    int64_t outlined = 0;
    for (int percent = 50; percent < 100; ++percent) {
        char *sql = sqlite3_mprintf("SELECT percentile(duration_ns, %d) FROM naive", percent);
        const int64_t min_ns = number_of(sql);
        sqlite3_free(sql);
        const long_walk with = walk_long_calls(min_ns, true);
        const long_walk without = walk_long_calls(min_ns, false);
        assert_true(with.blocks <= without.blocks && without.outlined == 0);
        assert_int_equal(with.rows, without.rows);
        outlined += with.outlined;
        char format[200], where[200];
        snprintf(format, sizeof(format), "SELECT %s FROM %%s %%s ORDER BY call_id",
                 columns[percent % 3]);
        snprintf(where, sizeof(where), "WHERE duration_ns >= %lld%s", (long long)min_ns,
                 percent % 3 == 0   ? " AND function_id = (SELECT function_id FROM naive WHERE "
                                      "rowid = 77)"
                 : percent % 3 == 1 ? " AND depth BETWEEN 3 AND 12"
                                    : "");
        compare(format, where);
    }
    assert_true(outlined > 100);
}

static void a_corrupt_outline_is_ignored(void **state)
{
    (void)state;
    const int64_t all = number_of("SELECT count(*) FROM naive WHERE duration_ns > 20");
    sqlite3 *writer;
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    sqlite3_exec(writer, "UPDATE block_outlines SET calls = iif(block_id % 2, x'7f', x'01ff')",
                 NULL, NULL, NULL);
    assert_int_equal(sqlite3_changes(writer), made.outlines);
    assert_int_equal(number_of("SELECT count(*) FROM calls WHERE duration_ns > 20"), all);
    sqlite3_close(writer);
}

static int block_walks;

static int count_walks(unsigned event, void *context, void *statement, void *text)
{
    (void)event;
    (void)context;
    (void)statement;
    block_walks += strncmp(text, "-- SELECT block_id, first_call", 30) == 0 ||
                   strncmp(text, "SELECT block_id, first_call", 27) == 0;
    return 0;
}

static void joins_by_id_keep_blocks_decoded(void **state)
{
    (void)state;
    const int64_t rows = number_of("SELECT count(*) FROM naive WHERE parent_id IS NOT NULL");
    block_walks = 0;
    sqlite3_trace_v2(database, SQLITE_TRACE_STMT, count_walks, NULL);
    assert_int_equal(number_of("SELECT count(*) FROM naive AS c CROSS JOIN calls AS p ON "
                               "p.call_id = c.parent_id CROSS JOIN naive AS n ON n.call_id = "
                               "p.call_id WHERE n.start_ns = p.start_ns AND n.duration_ns IS "
                               "p.duration_ns AND n.parent_id IS p.parent_id AND n.function_id = "
                               "p.function_id AND n.self_ns IS p.self_ns AND n.depth = c.depth - 1 "
                               "AND n.caller_function_id IS p.caller_function_id"),
                     rows);
    sqlite3_trace_v2(database, 0, NULL, NULL);
    assert_true(rows > 4000);
    assert_true(block_walks > 0);
    assert_true(block_walks < rows / 10);
    /* further conditions on the joined table do not change the plan */
    static const char *const conditions[] = {
        "p.depth > 2 AND p.duration_ns > 30", "p.function_id IN (100001, 100007, 1003)",
        "p.caller_function_id = 100002", "p.start_ns BETWEEN 100 AND 4000 AND p.end_ns >= 2000",
        "p.session_id = 1 AND p.thread_id = c.thread_id AND p.stream_id = c.stream_id"};
    block_walks = 0;
    sqlite3_trace_v2(database, SQLITE_TRACE_STMT, count_walks, NULL);
    for (size_t i = 0; i < 5; ++i) {
        assert_true(compare("SELECT c.call_id, p.call_id FROM naive AS c CROSS JOIN %s AS p ON "
                            "p.call_id = c.parent_id WHERE %s ORDER BY c.rowid",
                            conditions[i]) > 20);
    }
    sqlite3_trace_v2(database, 0, NULL, NULL);
    assert_true(block_walks < rows / 2);
    /* these ids do not exist and lie between existing ones */
    assert_int_equal(number_of("SELECT count(*) FROM naive AS c CROSS JOIN calls AS p ON p.call_id "
                               "= c.call_id + 100000000 * (c.rowid % 2)"),
                     number_of("SELECT count(*) FROM naive WHERE rowid % 2 = 0"));
}

static void callees_are_found_where_their_caller_runs(void **state)
{
    (void)state;
    const int64_t rows = number_of("SELECT count(*) FROM naive WHERE parent_id IS NOT NULL");
    const int64_t callers = number_of("SELECT count(*) FROM naive");
    const int64_t blocks = number_of("SELECT count(*) FROM blocks WHERE kind = 1");
    block_walks = 0;
    sqlite3_trace_v2(database, SQLITE_TRACE_STMT, count_walks, NULL);
    assert_int_equal(number_of("SELECT count(*) FROM naive AS p CROSS JOIN calls AS c ON "
                               "c.parent_id = p.call_id CROSS JOIN naive AS n ON n.call_id = "
                               "c.call_id WHERE n.parent_id = p.call_id AND n.start_ns = "
                               "c.start_ns AND n.duration_ns IS c.duration_ns"),
                     rows);
    sqlite3_trace_v2(database, 0, NULL, NULL);
    /* one scan for each block, and for the calls open at the end of a block */
    assert_true(blocks > 50);
    assert_true(block_walks > 0);
    assert_true(block_walks < callers / 2);
    assert_int_equal(number_of("SELECT count(*) FROM naive AS p CROSS JOIN calls AS c ON "
                               "c.parent_id = p.call_id AND c.call_id > p.call_id + 1 AND c.depth "
                               "< 9"),
                     number_of("SELECT count(*) FROM naive WHERE call_id > parent_id + 1 AND "
                               "depth < 9"));
    assert_int_equal(number_of("SELECT count(*) FROM calls WHERE parent_id = -5"), 0);
    assert_int_equal(
        number_of("SELECT count(*) FROM calls WHERE parent_id = (1 << 63) OR caller_function_id = "
                  "(1 << 63)"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_one_row_with_every_column_true),
        cmocka_unit_test(counting_reads_no_columns_and_counts_all),
        cmocka_unit_test(random_conditions_answer_like_a_full_scan),
        cmocka_unit_test(groups_and_orders_equal_those_of_sqlite),
        cmocka_unit_test(sets_offsets_and_distinct_are_pushed_into_the_plan),
        cmocka_unit_test(call_aggregate_equals_the_sum_of_its_calls),
        cmocka_unit_test(descendants_and_ancestors_follow_the_tree),
        cmocka_unit_test(a_corrupt_block_is_named_and_the_rest_is_read),
        cmocka_unit_test(a_damaged_page_ends_the_query),
        cmocka_unit_test(calls_cannot_be_written),
        cmocka_unit_test(table_functions_over_calls_equal_joins),
        cmocka_unit_test(table_functions_over_calls_accept_a_time_window),
        cmocka_unit_test(calls_that_overlap_a_moment_need_few_blocks),
        cmocka_unit_test(long_calls_come_from_outlines),
        cmocka_unit_test(joins_by_id_keep_blocks_decoded),
        cmocka_unit_test(callees_are_found_where_their_caller_runs),
        cmocka_unit_test(a_range_is_found_without_a_walk_through_the_stream),
        cmocka_unit_test(a_corrupt_outline_is_ignored), /* no outline is left after this test */
    };
    return cmocka_run_group_tests(tests, open_trace, close_naive_calls);
}
