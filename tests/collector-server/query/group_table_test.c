#include "tests/collector-server/query/naive_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Returns the number of rows that only one of the two ways to group gives. Fails if there are no
 * rows. */
static int64_t differing_groups(const char *keys, const char *arguments, const char *expressions,
                                const char *columns, const char *where)
{
    char *ours = sqlite3_mprintf("SELECT %s, calls, open, duration_ns, self_ns, min_ns, max_ns "
                                 "FROM call_groups('%s') WHERE 1 %s",
                                 columns, keys, arguments);
    char *theirs = sqlite3_mprintf(
        "SELECT %s, count(duration_ns), count(*) - count(duration_ns), "
        "coalesce(sum(duration_ns), 0), coalesce(sum(self_ns), 0), min(duration_ns), "
        "max(duration_ns) FROM naive WHERE %s GROUP BY %s",
        expressions, where, expressions);
    char *rows = sqlite3_mprintf("SELECT count(*) FROM (%s)", theirs);
    char *differing = sqlite3_mprintf(
        "SELECT (SELECT count(*) FROM (%s EXCEPT %s)) + (SELECT count(*) FROM (%s EXCEPT %s)) + "
        "abs((SELECT count(*) FROM (%s)) - (SELECT count(*) FROM (%s)))",
        ours, theirs, theirs, ours, ours, theirs);
    assert_true(number_of(rows) > 0);
    const int64_t count = number_of(differing);
    sqlite3_free(ours);
    sqlite3_free(theirs);
    sqlite3_free(rows);
    sqlite3_free(differing);
    return count;
}

/* Computes the phase in which a call of `naive` began: of the running phases the one that began
 * last. */
static const char phases_sql[] =
    "CREATE TEMP TABLE phases AS SELECT call_id, (SELECT m.mark_id FROM marks AS m WHERE "
    "m.session_id = n.session_id AND NOT m.is_end AND m.at_ns <= n.start_ns AND n.start_ns < "
    "coalesce((SELECT min(e.at_ns) FROM marks AS e WHERE e.session_id = m.session_id AND "
    "e.name = m.name AND e.is_end AND e.at_ns >= m.at_ns), 1 << 62) "
    "ORDER BY m.at_ns DESC, m.mark_id DESC LIMIT 1) AS mark_id FROM naive AS n;"
    "CREATE UNIQUE INDEX temp.phases_by_call ON phases (call_id)";

static int open_trace(void **state)
{
    (void)state;
    const int opened = open_naive_calls("group_table_test.db");
    return opened == 0 && sqlite3_exec(database, phases_sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                                            : -1;
}

#define MARK_OF_CALL "(SELECT p.mark_id FROM phases AS p WHERE p.call_id = naive.call_id)"
#define HAS_VALUE(condition) "call_id IN (SELECT a.call_id FROM arguments AS a WHERE " condition ")"

static void call_groups_equal_grouping_all_calls(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *columns, *expressions;
    } groupings[] = {
        {"function", "function_id", "function_id"},
        {"session,function", "session_id, function_id", "session_id, function_id"},
        {"thread, depth", "thread_id, depth", "thread_id, depth"},
        {"caller,function,stream", "caller_function_id, function_id, stream_id",
         "caller_function_id, function_id, stream_id"},
        {"bucket:700", "bucket_ns", "start_ns / 700 * 700"},
        {"module,bucket:5000", "module_id, bucket_ns",
         "(SELECT f.module_id FROM functions AS f WHERE f.function_id = naive.function_id), "
         "start_ns / 5000 * 5000"},
        {"mark", "mark_id", MARK_OF_CALL},
        {"mark,function,bucket:300", "mark_id, function_id, bucket_ns",
         MARK_OF_CALL ", function_id, start_ns / 300 * 300"},
    };
    static const struct {
        const char *arguments, *where;
    } filters[] = {
        {"", "1"},
        {"AND in_session = 2", "session_id = 2"},
        {"AND from_ns = 3000 AND to_ns = 9000", "start_ns BETWEEN 3000 AND 8999"},
        {"AND shortest_ns = 50", "duration_ns >= 50"},
        {"AND shortest_ns = 20 AND longest_ns = 400", "duration_ns BETWEEN 20 AND 400"},
        {"AND least_depth = 2 AND greatest_depth = 4", "depth BETWEEN 2 AND 4"},
        {"AND in_thread = (SELECT max(thread_id) FROM threads)",
         "thread_id = (SELECT max(thread_id) FROM threads)"},
        {"AND called_by = (SELECT max(caller_function_id) FROM naive)",
         "caller_function_id = (SELECT max(caller_function_id) FROM naive)"},
        {"AND of_function = (SELECT max(function_id) FROM naive)",
         "function_id = (SELECT max(function_id) FROM naive)"},
        {"AND ended_as = 'unwound'", "ending = 'unwound'"},
        {"AND ended_as = 'open' AND in_session = 1", "ending = 'open' AND session_id = 1"},
        {"AND ended_as = 'returned' AND shortest_ns = 30",
         "ending = 'returned' AND duration_ns >= 30"},
        {"AND with_value = 3", HAS_VALUE("a.value = 3")},
        {"AND at_position = 0 AND least_value = 2 AND greatest_value = 3",
         HAS_VALUE("a.position = 0 AND a.value BETWEEN 2 AND 3")},
        {"AND at_position = 1", HAS_VALUE("a.position = 1")},
    };
    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); ++i) {
        for (size_t k = 0; k < sizeof(filters) / sizeof(filters[0]); ++k) {
            assert_int_equal(differing_groups(groupings[i].keys, filters[k].arguments,
                                              groupings[i].expressions, groupings[i].columns,
                                              filters[k].where),
                             0);
        }
    }
}

static void call_groups_know_quantiles_and_processes(void **state)
{
    (void)state;
    assert_int_equal(number_of("SELECT count(*) FROM call_groups('function') WHERE calls > 0 AND "
                               "NOT (min_ns <= p50_ns AND p50_ns <= p90_ns AND p90_ns <= p99_ns "
                               "AND p99_ns <= max_ns)"),
                     0);
    assert_int_equal(
        number_of("SELECT count(*) FROM call_groups('function') AS g JOIN (SELECT function_id, "
                  "percentile(duration_ns, 90) AS p FROM naive GROUP BY 1) AS n USING "
                  "(function_id) WHERE g.p90_ns IS NOT n.p"),
        0);
    assert_int_equal(number_of("SELECT count(*) FROM call_groups('function') AS g WHERE calls <> "
                               "(SELECT sum(count) FROM histogram(g.histogram))"),
                     0);
    assert_int_equal(
        number_of("SELECT count(*) FROM (SELECT process_id, sum(calls + open) AS n FROM "
                  "call_groups('process') GROUP BY 1) AS g FULL JOIN (SELECT process_id, "
                  "count(*) AS m FROM naive LEFT JOIN threads USING (thread_id) LEFT JOIN "
                  "processes AS p ON p.session_id = threads.session_id AND p.number = "
                  "process_number GROUP BY 1) AS n ON g.process_id IS n.process_id "
                  "WHERE g.n IS NOT n.m"),
        0);
    assert_int_equal(number_of("SELECT calls + open FROM call_groups('')"), made.count);
}

static void call_groups_refuse_keys_that_they_do_not_know(void **state)
{
    (void)state;
    static const char *const wrong[] = {"functions", "function,", ",",          "bucket",
                                        "bucket:",   "bucket:0",  "bucket:-10", "bucket:10x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        char sql[100];
        snprintf(sql, sizeof(sql), "SELECT * FROM call_groups('%s')", wrong[i]);
        sqlite3_stmt *statement = prepare(sql);
        assert_int_equal(sqlite3_step(statement), SQLITE_ERROR);
        assert_non_null(strstr(sqlite3_errmsg(database), "keys are a list"));
        sqlite3_finalize(statement);
    }
    sqlite3_stmt *odd = prepare("SELECT * FROM call_groups('function') WHERE ended_as = 'thrown'");
    assert_int_equal(sqlite3_step(odd), SQLITE_ERROR);
    assert_non_null(strstr(sqlite3_errmsg(database), "ended_as is returned"));
    sqlite3_finalize(odd);
    sqlite3_stmt *none = prepare("SELECT * FROM call_groups(NULL)");
    assert_int_equal(sqlite3_step(none), SQLITE_ROW); /* without keys everything is one group */
    sqlite3_finalize(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_groups_equal_grouping_all_calls),
        cmocka_unit_test(call_groups_know_quantiles_and_processes),
        cmocka_unit_test(call_groups_refuse_keys_that_they_do_not_know),
    };
    return cmocka_run_group_tests(tests, open_trace, close_naive_calls);
}
