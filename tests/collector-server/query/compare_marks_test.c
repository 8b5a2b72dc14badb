/* Compares marks of a recording with calls that were counted without a clock. */
#include "collector-server/query/compare.h"
#include "collector-server/query/query.h"
#include "collector-server/store/database.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MARKS = 20, PERIOD_NS = 50000, SHORT_NS = 5000, LONG_NS = 40000 };

static const char path[] = "compare_marks_test.db";
static const int64_t function_id = 100001;
static sqlite3 *database;

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
    va_list arguments;
    char *problem = NULL;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK) {
        fail_msg("%s: %s", sql, problem);
    }
    sqlite3_free(sql);
}

static void add_mark(int number, const char *name, int64_t from_ns, int64_t to_ns)
{
    run("INSERT INTO marks(session_id, number, name, is_end, at_ns) VALUES (1, %d, '%s', 0, %lld), "
        "(1, %d, '%s', 1, %lld)",
        number, name, (long long)from_ns, number + 1, name, (long long)to_ns);
}

static int make(void **state)
{
    (void)state;
    trace made;
    sj_error error = {0};
    const trace_shape shape = {.seed = 5,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 40000,
                               .block_events = 1024,
                               .functions = 4,
                               .max_depth = 8};
    make_trace(path, &shape, &made);
    free_trace(&made);
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK ||
        sj_query_register(database, NULL, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    run("UPDATE functions SET symbol_key = function_id");
    for (int i = 0; i < MARKS; ++i) {
        const int64_t from_ns = (int64_t)i * PERIOD_NS;
        add_mark(4 * i + 1, "short", from_ns, from_ns + SHORT_NS);
        add_mark(4 * i + 3, "long", from_ns + SHORT_NS, from_ns + SHORT_NS + LONG_NS);
    }
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

/* Returns the verdict on the function, and how much longer it takes in a long mark. */
static sj_compare_verdict verdict_of(int64_t *difference_ns)
{
    const sj_compare_side sides[2] = {{database, "mark:short"}, {database, "mark:long"}};
    const sj_compare_options options = {0};
    sj_compare *compare = NULL;
    sj_error error = {0};
    if (sj_compare_run(sides, &options, &compare, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    size_t count;
    const sj_compare_row *rows = sj_compare_rows(compare, &count);
    sj_compare_verdict verdict = SJ_COMPARE_ADDED;
    for (size_t i = 1; i < count; ++i) {
        if (rows[i].function_id[1] == function_id) {
            verdict = rows[i].verdict;
            *difference_ns = (int64_t)(rows[i].self_ns[1] - rows[i].self_ns[0]);
        }
    }
    sj_compare_free(compare);
    return verdict;
}

static void the_error_of_a_mark_is_that_of_its_share(void **state)
{
    (void)state;
    static const struct {
        int differences; /* differences in errors of the whole session */
        int sampled_calls;
        sj_compare_verdict verdict;
    } cases[] = {
        {1, 100, SJ_COMPARE_SLOWER},
        /* a fifth of the error: the root of a 25th of the calls */
        {4, 100, SJ_COMPARE_INCONCLUSIVE},
        {4, 1, SJ_COMPARE_SLOWER}, /* a 25th: no two calls were timed */
    };
    int64_t difference_ns = 0;
    int64_t unused;
    assert_int_equal(verdict_of(&difference_ns), SJ_COMPARE_SLOWER);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        run("UPDATE function_stats SET untimed_calls = calls / 2, sampled_calls = %d, error_ns = "
            "%lld WHERE function_id = %lld",
            cases[i].sampled_calls, cases[i].differences * (long long)difference_ns,
            (long long)function_id);
        assert_int_equal(verdict_of(&unused), cases[i].verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_of_a_mark_is_that_of_its_share),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
