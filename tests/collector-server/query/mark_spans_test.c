/* Compares the phase of each moment with a list that is searched from its beginning. */
#include "collector-server/query/mark_spans.h"
#include "tests/support/check.h"

enum { MOMENTS = 64 };

/* Ordered by begin. A phase lasts for ever if no end with its name follows its begin. */
static const struct phase {
    int64_t mark_id, from_ns, to_ns;
} phases[] = {{1, 10, 20}, {2, 12, 30}, {3, 15, 17}, {4, 15, 16}, {6, 40, 40}, {5, 50, INT64_MAX}};

static const char marks_sql[] =
    "CREATE TABLE marks (mark_id, session_id, number, name, is_end, at_ns);"
    "INSERT INTO marks VALUES (1, 1, 1, 'a', 0, 10), (7, 1, 2, 'a', 1, 20), (2, 1, 3, 'b', 0, 12),"
    " (8, 1, 4, 'b', 1, 30), (3, 1, 5, 'c', 0, 15), (9, 1, 6, 'c', 1, 17), (4, 1, 7, 'd', 0, 15),"
    " (10, 1, 8, 'd', 1, 16), (5, 1, 9, 'e', 0, 50), (11, 1, 10, 'e', 1, 49),"
    " (12, 1, 11, 'a', 1, 60), (6, 1, 12, 'f', 0, 40), (13, 1, 13, 'f', 1, 40),"
    " (14, 2, 1, 'e', 1, 55), (15, 2, 2, 'g', 0, 5)";

static int64_t naive_mark(int64_t ns)
{
    int64_t mark_id = SJ_NO_MARK;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        mark_id = phases[i].from_ns <= ns && ns < phases[i].to_ns ? phases[i].mark_id : mark_id;
    }
    return mark_id;
}

static void each_moment_is_in_the_phase_that_began_last(void **state)
{
    sqlite3 *database;
    sj_mark_spans marks = {0};
    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, marks_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sj_mark_spans_open(&marks, database), SQLITE_OK);
    assert_int_equal(sj_mark_spans_enter(&marks, 2), SQLITE_OK);
    int64_t until_ns = 0;
    assert_int_equal(sj_mark_spans_at(&marks, INT64_MAX - 1, &until_ns), 15);
    assert_int_equal(sj_mark_spans_enter(&marks, 1), SQLITE_OK);
    for (int64_t ns = 0; ns < MOMENTS; ns++) {
        assert_int_equal(sj_mark_spans_at(&marks, ns, &until_ns), naive_mark(ns));
        assert_true(until_ns > ns);
        for (int64_t later = ns; later < until_ns && later < MOMENTS; later++) {
            assert_int_equal(naive_mark(later), naive_mark(ns));
        }
    }
    sj_mark_spans_close(&marks);
    sqlite3_close(database);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_is_in_the_phase_that_began_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
