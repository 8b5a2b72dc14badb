#include "collector-server/query/late_exits.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STREAM = 11, CALLS = 3000, BLOCK_MAX = 200 };

static const char path[] = "late_exits_test.db";
static sqlite3 *database;

/* The end of each call of the stream, as an exit list names it; 0: no list names the call. */
typedef struct answers {
    uint64_t ends[CALLS];
    const uint64_t *indexes;
} answers;

static int open_trace(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 3,
                               .sessions = 1,
                               .streams = 2,
                               .calls = CALLS,
                               .block_events = 64,
                               .functions = 20,
                               .max_depth = 40,
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

static void note_end(void *context, size_t position, const sj_deferred_exit *leave)
{
    answers *found = context;
    assert_int_equal(found->indexes[position], leave->call_index);
    assert_true(leave->call_index < CALLS);
    found->ends[leave->call_index] = leave->end_ticks;
}

/* Asks for the end of each call, block by block. The calls include those that ended in their own
 * block or never. */
static void ask_all(sj_late_exits *late, const char *order, answers *found)
{
    char sql[200];
    sqlite3_stmt *blocks;
    *found = (answers){0};
    snprintf(sql, sizeof(sql),
             "SELECT first_call, call_count FROM blocks WHERE stream_id = %d AND kind = 1 "
             "AND call_count > 0 ORDER BY first_call %s",
             STREAM, order);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &blocks, NULL), SQLITE_OK);
    int rows = 0;
    for (; sqlite3_step(blocks) == SQLITE_ROW; ++rows) {
        uint64_t indexes[BLOCK_MAX];
        const size_t count = (size_t)sqlite3_column_int64(blocks, 1);
        assert_true(count <= BLOCK_MAX);
        for (size_t i = 0; i < count; ++i) {
            indexes[i] = (uint64_t)sqlite3_column_int64(blocks, 0) + i;
        }
        found->indexes = indexes;
        assert_int_equal(sj_late_exits_find(late, STREAM, indexes, count, note_end, found),
                         SQLITE_OK);
    }
    sqlite3_finalize(blocks);
    found->indexes = NULL;
    assert_true(rows > 50);
}

static int64_t list_count(void)
{
    return number_of("SELECT count(*) FROM blocks WHERE stream_id = 11 AND late IS NOT NULL");
}

static void a_scan_reads_each_list_once_after_its_first_search(void **state)
{
    (void)state;
    sj_late_exits late = {0};
    answers *found = calloc(1, sizeof(*found));
    assert_non_null(found);
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    ask_all(&late, "ASC", found);
    assert_true(list_count() > 50);
    assert_true((int64_t)late.lists_read <= 2 * list_count());
    assert_true((int64_t)late.lists_read >= list_count() - 1); /* the first block needs no list */
    sj_late_exits_close(&late);
    free(found);
}

static void count_end(void *context, size_t position, const sj_deferred_exit *leave)
{
    (void)position;
    (void)leave;
    ++*(size_t *)context;
}

/* The first block of the stream has calls that end in other blocks. */
static void one_search_stores_no_exits(void **state)
{
    (void)state;
    sj_late_exits late = {0};
    uint64_t indexes[BLOCK_MAX];
    size_t first = 0;
    size_t again = 0;
    const size_t count = (size_t)number_of("SELECT call_count FROM blocks WHERE stream_id = 11 "
                                           "AND kind = 1 AND first_call = 0 AND call_count > 0");
    for (size_t i = 0; i < count; ++i) {
        indexes[i] = i;
    }
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    assert_int_equal(sj_late_exits_find(&late, STREAM, indexes, count, count_end, &first),
                     SQLITE_OK);
    assert_int_equal(late.count, 0);
    assert_true(first > 0);
    assert_int_equal(sj_late_exits_find(&late, STREAM, indexes, count, count_end, &again),
                     SQLITE_OK);
    assert_true(late.count >= again);
    assert_int_equal(first, again);
    sj_late_exits_close(&late);
}

static void descending_order_reads_lists_at_most_four_times(void **state)
{
    (void)state;
    sj_late_exits late = {0};
    answers *rising = calloc(2, sizeof(*rising));
    answers *falling = rising + 1;
    assert_non_null(rising);
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    ask_all(&late, "ASC", rising);
    sj_late_exits_close(&late);
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    ask_all(&late, "DESC", falling);
    assert_true((int64_t)late.lists_read <= 4 * list_count());
    assert_memory_equal(rising->ends, falling->ends, sizeof(rising->ends));
    sj_late_exits_close(&late);
    free(rising);
}

static void a_limit_on_memory_changes_no_result(void **state)
{
    (void)state;
    sj_late_exits late = {0};
    answers *all = calloc(2, sizeof(*all));
    answers *bounded = all + 1;
    assert_non_null(all);
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    ask_all(&late, "ASC", all);
    const size_t held = late.count;
    sj_late_exits_close(&late);
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    late.max_exits = 8;
    ask_all(&late, "ASC", bounded);
    assert_true(late.count <= 8 && held > 8);
    assert_memory_equal(all->ends, bounded->ends, sizeof(all->ends));
    sj_late_exits_close(&late);
    free(all);
}

static void lists_are_read_without_their_blocks(void **state)
{
    (void)state;
    sj_late_exits late = {0};
    assert_int_equal(sj_late_exits_open(&late, database), SQLITE_OK);
    sqlite3_stmt *const statements[] = {late.lists, late.search};
    for (size_t i = 0; i < 2; ++i) {
        char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(statements[i]));
        sqlite3_stmt *plan;
        assert_int_equal(sqlite3_prepare_v2(database, explain, -1, &plan, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(plan), SQLITE_ROW);
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        assert_non_null(strstr(step, "USING COVERING INDEX blocks_late"));
        assert_int_equal(sqlite3_step(plan), SQLITE_DONE); /* no sorting */
        sqlite3_finalize(plan);
        sqlite3_free(explain);
    }
    sj_late_exits_close(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_reads_each_list_once_after_its_first_search),
        cmocka_unit_test(one_search_stores_no_exits),
        cmocka_unit_test(descending_order_reads_lists_at_most_four_times),
        cmocka_unit_test(a_limit_on_memory_changes_no_result),
        cmocka_unit_test(lists_are_read_without_their_blocks),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
