/* A deep stack that was entered in many blocks: ancestors() must return all of it, and decode each
 * block once. */
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char path[] = "ancestors_test.db";
static sqlite3 *database;
static int64_t decoded; /* number of blocks whose bytes were read */

static int open_trace(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 5,
                               .sessions = 1,
                               .streams = 2,
                               .calls = 6000,
                               .block_events = 64,
                               .functions = 20,
                               .max_depth = 400,
                               .leave_open = true};
    make_trace(path, &shape, &made);
    free_trace(&made);
    sj_error error = {0};
    return sj_database_open_reader(path, &database, &error) == SJ_OK ? 0 : -1;
}

static int close_trace(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

static int64_t number_of(const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static int count_decoded(unsigned what, void *context, void *statement, void *text)
{
    (void)what;
    (void)context;
    (void)statement;
    decoded += strstr(text, "FROM blocks WHERE block_id = ?1") != NULL;
    return 0;
}

/* The deepest call, found by way of `calls` only. */
#define DEEPEST "(SELECT call_id FROM calls ORDER BY depth DESC, call_id LIMIT 1)"

static void ancestors_of_a_deep_call_equal_its_chain_of_parents(void **state)
{
    (void)state;
    const int64_t depth = number_of("SELECT max(depth) FROM calls");
    assert_true(depth > 40);
    assert_int_equal(number_of("SELECT count(*) FROM ancestors(" DEEPEST ")"), depth);
    static const char differences[] =
        "WITH RECURSIVE up(id) AS (SELECT parent_id FROM calls WHERE call_id = " DEEPEST
        " UNION ALL SELECT c.parent_id FROM up JOIN calls AS c ON c.call_id = up.id "
        "WHERE c.parent_id IS NOT NULL), "
        "wanted AS (SELECT c.* FROM up CROSS JOIN calls AS c ON c.call_id = up.id), "
        "given AS (SELECT call_id, session_id, stream_id, thread_id, function_id, parent_id, "
        "depth, start_ns, end_ns, duration_ns, self_ns, ending, flags, caller_function_id, "
        "tail_caller_id, physical_parent_id, physical_duration_ns, cpu_ns, cpu_self_ns, "
        "allocations, allocated_bytes, frees, freed_bytes, net_bytes, allocated_self_bytes "
        "FROM ancestors(" DEEPEST ")) "
        "SELECT (SELECT count(*) FROM (SELECT * FROM wanted EXCEPT SELECT * FROM given)) + "
        "(SELECT count(*) FROM (SELECT * FROM given EXCEPT SELECT * FROM wanted)) + "
        "(SELECT count(*) <> max(depth) + 1 FROM wanted)";
    assert_int_equal(number_of(differences), 0);
    /* innermost first */
    assert_int_equal(number_of("SELECT sum(depth >= before) FROM (SELECT depth, lag(depth) OVER () "
                               "AS before FROM ancestors(" DEEPEST "))"),
                     0);
}

static void each_block_of_a_deep_stack_is_decoded_once(void **state)
{
    (void)state;
    char sql[100];
    const int64_t deepest = number_of("SELECT " DEEPEST);
    const int64_t blocks = number_of("SELECT count(*) FROM blocks WHERE stream_id = "
                                     "(SELECT " DEEPEST " >> 38) AND kind = 1");
    sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM ancestors(%lld)", deepest);
    decoded = 0;
    sqlite3_trace_v2(database, SQLITE_TRACE_STMT, count_decoded, NULL);
    const int64_t rows = number_of(sql);
    sqlite3_trace_v2(database, 0, NULL, NULL);
    assert_true(decoded > 1);
    assert_true(decoded <= blocks);
    assert_true(decoded * 2 < rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ancestors_of_a_deep_call_equal_its_chain_of_parents),
        cmocka_unit_test(each_block_of_a_deep_stack_is_decoded_once),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
