/* open_now: returns the calls that are open at the end of the stored data, as long as more may
 * come. */
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "proto/callgraph/stack_walk.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char path[] = "open_now_test.db";

static int64_t count_open(sqlite3 *database)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT count(*) FROM open_now(1) WHERE NOT is_counted", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Sets all sessions to `state` and removes the ends of their streams. Returns the number of open
 * calls. */
static int64_t count_open_in(const char *state)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    char *sql = sqlite3_mprintf("UPDATE sessions SET state = %Q; UPDATE streams SET ended = 0;"
                                " DELETE FROM open_calls",
                                state);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    sqlite3_close(database);
    assert_int_equal(sj_database_open_reader(path, &database, &error), SJ_OK);
    const int64_t number = count_open(database);
    sqlite3_close(database);
    return number;
}

static void calls_are_open_until_their_session_has_an_end(void **state)
{
    (void)state;
    trace made;
    int64_t open = 0;
    const trace_shape shape = {.seed = 3,
                               .sessions = 1,
                               .streams = 2,
                               .calls = 300,
                               .block_events = 64,
                               .functions = 20,
                               .max_depth = 40,
                               .leave_open = true,
                               .keep_calls = true};
    make_trace(path, &shape, &made);
    for (size_t i = 0; i < made.count; ++i) {
        open += made.calls[i].end_ns < 0;
    }
    free_trace(&made);
    assert_true(open > 2);
    assert_int_equal(count_open_in("recording"), open);
    assert_int_equal(count_open_in("lost contact"), open);
    assert_int_equal(count_open_in("completed"), 0);
}

static sj_status failure; /* each walk fails with it; SJ_OK: none does */

sj_status __real_sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                                     const sj_stack_frame *deep);
sj_status __wrap_sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                                     const sj_stack_frame *deep);
sj_status __wrap_sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                                     const sj_stack_frame *deep)
{
    return failure != SJ_OK ? failure : __real_sj_stack_walk_begin(walk, block, deep);
}

/* A query finds no open calls in a damaged block. If it is out of memory, it fails. */
static void a_damaged_block_is_not_a_lack_of_memory(void **state)
{
    (void)state;
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    sj_error error = {0};
    assert_true(count_open_in("recording") > 0);
    assert_int_equal(sj_database_open_reader(path, &database, &error), SJ_OK);
    assert_int_equal(
        sqlite3_prepare_v2(database, "SELECT count(*) FROM open_now(1)", -1, &statement, NULL),
        SQLITE_OK);
    failure = SJ_ECORRUPT;
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(statement, 0), 0);
    sqlite3_reset(statement);
    failure = SJ_ENOMEM;
    assert_int_equal(sqlite3_step(statement), SQLITE_NOMEM);
    failure = SJ_OK;
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_open_until_their_session_has_an_end),
        cmocka_unit_test(a_damaged_block_is_not_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
