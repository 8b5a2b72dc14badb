/* Steps of threads bound a part of their time. The bound is never more than is certain, whatever a
 * device reports. */
#include "collector-server/cli/wait_steps.h"
#include "tests/support/check.h"

#include <string.h>

#define MS INT64_C(1000000)

enum { TICK_MS = 4 };

static void read_steps(const char *rows, sj_wait_steps *steps)
{
    sqlite3 *database;
    sj_error error = {0};
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    char *sql = sqlite3_mprintf(
        "CREATE TABLE threads (thread_id, session_id, number); INSERT INTO threads VALUES "
        "(11, 1, 1), (12, 1, 2); CREATE TABLE thread_times (session_id, thread_number, from_ns, "
        "to_ns, cpu_ns); INSERT INTO thread_times VALUES %s",
        rows);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    *steps = (sj_wait_steps){0};
    assert_int_equal(sj_wait_steps_read(database, 1, steps, &error), SJ_OK);
    sqlite3_free(sql);
    sqlite3_close(database);
}

static void check_bound(const sj_wait_steps *steps, int64_t thread_id, int64_t from_ms,
                        int64_t to_ms, int64_t working_ms, int64_t waiting_ms)
{
    int64_t working_ns = -1;
    int64_t waiting_ns = -1;
    sj_wait_steps_bound(steps, thread_id, from_ms * MS, to_ms * MS, &working_ns, &waiting_ns);
    assert_int_equal(working_ns, working_ms > TICK_MS ? (working_ms - TICK_MS) * MS : 0);
    assert_int_equal(waiting_ns, waiting_ms > TICK_MS ? (waiting_ms - TICK_MS) * MS : 0);
}

static void bounds_use_only_the_certain_part_of_a_step(void **state)
{
    (void)state;
    sj_wait_steps steps;
    read_steps("(1, 1, 0, 20000000, 15000000), (1, 1, 20000000, 120000000, 0), "
               "(1, 1, 120000000, 140000000, 20000000), (1, 2, 50000000, 70000000, 10000000)",
               &steps);
    check_bound(&steps, 11, 0, 140, 35, 105);
    check_bound(&steps, 11, 20, 120, 0, 100);
    check_bound(&steps, 11, 50, 90, 0, 40); /* within one step */
    check_bound(&steps, 11, 10, 130, 15,
                100); /* the first 10 ms have no certain wait, and 5 ms of work */
    check_bound(&steps, 11, 0, 10, 5, 0);
    check_bound(&steps, 12, 50, 60, 0, 0);    /* either is possible */
    check_bound(&steps, 12, 0, 1000, 10, 10); /* time without samples is not divided */
    check_bound(&steps, 12, 100, 1000, 0, 0); /* after all steps */
    check_bound(&steps, 12, 0, 50, 0, 0);     /* before all steps */
    check_bound(&steps, 13, 0, 1000, 0, 0);   /* a thread without steps */
    sj_wait_steps_deinit(&steps);
    /* For a step in the middle that works and waits, both are added up. */
    read_steps("(1, 1, 0, 20000000, 20000000), (1, 1, 20000000, 120000000, 30000000), "
               "(1, 1, 120000000, 220000000, 60000000), (1, 1, 220000000, 240000000, 0)",
               &steps);
    check_bound(&steps, 11, 0, 240, 110, 130);
    check_bound(&steps, 11, 10, 230, 100, 120);
    sj_wait_steps_deinit(&steps);
    read_steps("(2, 1, 0, 1, 1)", &steps);
    check_bound(&steps, 11, 0, 1000, 0, 0);
    sj_wait_steps_deinit(&steps);
}

static void false_steps_stay_within_their_time(void **state)
{
    (void)state;
    sj_wait_steps steps;
    read_steps(
        "(1, 1, 0, 20000000, 9000000000000000000), (1, 1, 10000000, 30000000, -5), "
        "(1, 1, 30000000, 20000000, 7), (1, 1, -9223372036854775807, 9223372036854775807, 1), "
        "(1, 1, 'x', NULL, 1e300), (1, 1, 40000000, 9223372036854775807, 1)",
        &steps);
    assert_int_equal(steps.count, 2);
    check_bound(&steps, 11, 0, 30, 20, 10);
    sj_wait_steps_deinit(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_use_only_the_certain_part_of_a_step),
        cmocka_unit_test(false_steps_stay_within_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
