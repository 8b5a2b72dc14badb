/* Compares sums of windows, with and without kept sums of blocks, with the calls themselves. */
#include "collector-server/query/query.h"
#include "collector-server/query/sums_cache.h"
#include "collector-server/store/store.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOWS = 60, END_NS = 40000, SPACE_BYTES = 4 << 20, SHORT_SPACE_BYTES = 60 << 10 };

static const char path[] = "sums_cache_test.db";
static trace made;
static sqlite3 *plain; /* with the table `naive` */

static sqlite3 *open_reader(sj_sums_cache *cache)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    if (sj_query_open_reader(path, cache, &database, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    return database;
}

static void run(sqlite3 *database, const char *sql)
{
    char *problem = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK) {
        fail_msg("%s: %s", sql, problem);
    }
}

static int make(void **state)
{
    (void)state;
    const trace_shape shape = {.seed = 11,
                               .sessions = 1,
                               .streams = 3,
                               .calls = 2000,
                               .block_events = 128,
                               .functions = 8, /* so few that calls nest in themselves */
                               .max_depth = 30,
                               .leave_open = true};
    make_trace(path, &shape, &made);
    plain = open_reader(NULL);
    run(plain, "PRAGMA query_only = 0");
    run(plain, "CREATE TEMP TABLE naive AS SELECT * FROM calls");
    run(plain, "CREATE UNIQUE INDEX temp.naive_by_id ON naive (call_id)");
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    sqlite3_close(plain);
    free_trace(&made);
    return 0;
}

/* Returns all rows of an answer as one text. Free it with sqlite3_free. */
static char *text_of(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, "rows\n");
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); ++i) {
            const unsigned char *value = sqlite3_column_text(statement, i);
            sqlite3_str_appendf(text, "%s ", value != NULL ? (const char *)value : "NULL");
        }
        sqlite3_str_appendchar(text, 1, '\n');
    }
    sqlite3_finalize(statement);
    return sqlite3_str_finish(text);
}

static void next_window(uint64_t *seed, char *window, size_t size)
{
    const int64_t from = (int64_t)(next_random(seed) % END_NS);
    const int64_t to = from + 1 + (int64_t)(next_random(seed) % (END_NS / 2));
    if (next_random(seed) % 4 == 0) {
        const int stream = 11 + (int)(next_random(seed) % 3);
        snprintf(window, size, "1, %lld, %lld, %d", (long long)from, (long long)to, stream);
    } else {
        snprintf(window, size, "1, %lld, %lld", (long long)from, (long long)to);
    }
}

static void assert_same_sums(sqlite3 *database, const char *window)
{
    char *sql = sqlite3_mprintf("SELECT * FROM call_aggregate(%s) ORDER BY function_id", window);
    char *expected = text_of(plain, sql);
    char *found = text_of(database, sql);
    assert_string_equal(found, expected);
    sqlite3_free(found);
    sqlite3_free(expected);
    sqlite3_free(sql);
}

static void recursion_counts_once_in_any_window(void **state)
{
    (void)state;
    uint64_t seed = 3;
    int64_t nested = 0;
    for (int i = 0; i < WINDOWS; ++i) {
        const int64_t from = (int64_t)(next_random(&seed) % END_NS);
        const int64_t to = from + 1 + (int64_t)(next_random(&seed) % (END_NS / 2));
        char *sql = sqlite3_mprintf(
            "WITH RECURSIVE w AS MATERIALIZED (SELECT * FROM naive WHERE start_ns >= %lld"
            "  AND start_ns < %lld),"
            " up(call_id, function_id, above) AS (SELECT call_id, function_id, parent_id FROM w"
            "  UNION ALL SELECT u.call_id, u.function_id, n.parent_id FROM up AS u"
            "  JOIN naive AS n ON n.call_id = u.above),"
            " nested AS MATERIALIZED (SELECT DISTINCT u.call_id FROM up AS u JOIN naive AS n"
            "  ON n.call_id = u.above AND n.function_id = u.function_id"
            "  WHERE n.start_ns >= %lld AND n.start_ns < %lld),"
            " sums AS (SELECT function_id, count(duration_ns) AS calls,"
            "  sum(iif(call_id IN nested, 0, duration_ns)) AS total_ns FROM w GROUP BY 1)"
            " SELECT sum(abs(coalesce(s.total_ns, 0) - a.total_ns) > a.calls + 1"
            "  OR s.calls IS NOT a.calls), count(*), sum(a.total_ns < a.duration_ns)"
            " FROM call_aggregate(1, %lld, %lld) AS a LEFT JOIN sums AS s USING (function_id)",
            (long long)from, (long long)to, (long long)from, (long long)to, (long long)from,
            (long long)to);
        sqlite3_stmt *statement = NULL;
        assert_int_equal(sqlite3_prepare_v2(plain, sql, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        assert_int_equal(sqlite3_column_int64(statement, 0), 0);
        nested += sqlite3_column_int64(statement, 2);
        sqlite3_finalize(statement);
        sqlite3_free(sql);
    }
    assert_true(nested > WINDOWS);
}

static void cached_sums_change_no_result(void **state)
{
    (void)state;
    static const size_t rooms[] = {SPACE_BYTES, SHORT_SPACE_BYTES, 1};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); ++i) {
        sj_sums_cache *cache = sj_sums_cache_new(rooms[i]);
        sqlite3 *database = open_reader(cache);
        sqlite3 *other = open_reader(cache);
        uint64_t seed = 7;
        for (int round = 0; round < WINDOWS; ++round) {
            char window[80];
            next_window(&seed, window, sizeof(window));
            assert_same_sums(database, window);
            assert_same_sums(other, window); /* with the sums that the first connection has left */
        }
        assert_same_sums(database, "1");
        sqlite3_close(other);
        sqlite3_close(database);
        sj_sums_cache_free(cache);
    }
}

static void blocks_of_cached_sums_are_not_read(void **state)
{
    (void)state;
    sj_sums_cache *cache = sj_sums_cache_new(SPACE_BYTES);
    sqlite3 *database = open_reader(cache);
    sqlite3 *writer = NULL;
    static const char sums[] = "SELECT * FROM call_aggregate(1) ORDER BY function_id";
    char *before = text_of(database, sums);
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    run(writer, "CREATE TEMP TABLE sound AS SELECT block_id, data FROM blocks WHERE kind = 1");
    run(writer, "UPDATE blocks SET data = x'00' WHERE kind = 1");
    char *after = text_of(database, sums);
    assert_string_equal(after, before);
    assert_null(sj_query_read_warnings(database));
    sqlite3_free(after);
    after = text_of(plain, sums); /* this reads the kept sums */
    assert_string_not_equal(after, before);
    char *warnings = sj_query_read_warnings(plain);
    assert_non_null(warnings);
    sqlite3_free(warnings);
    run(writer, "UPDATE blocks SET data = (SELECT data FROM sound AS s WHERE s.block_id ="
                " blocks.block_id) WHERE kind = 1");
    sqlite3_close(writer);
    sqlite3_free(after);
    sqlite3_free(before);
    sqlite3_close(database);
    sj_sums_cache_free(cache);
}

static void another_block_with_the_same_number_is_read_again(void **state)
{
    (void)state;
    sj_sums_cache *cache = sj_sums_cache_new(SPACE_BYTES);
    const sj_block_sums sums = {.place = {.block_id = 5, .stream_id = 2, .last_ticks = 9}};
    sj_block_place place = sums.place;
    sj_sums_cache_put(cache, &sums);
    const sj_block_sums *held = sj_sums_cache_hold(cache, &place);
    assert_non_null(held);
    sj_sums_cache_release(cache, held);
    place.last_ticks = 10;
    assert_null(sj_sums_cache_hold(cache, &place));
    place.last_ticks = 9;
    place.stream_id = 3;
    assert_null(sj_sums_cache_hold(cache, &place));
    sj_sums_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recursion_counts_once_in_any_window),
        cmocka_unit_test(cached_sums_change_no_result),
        cmocka_unit_test(blocks_of_cached_sums_are_not_read),
        cmocka_unit_test(another_block_with_the_same_number_is_read_again),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
