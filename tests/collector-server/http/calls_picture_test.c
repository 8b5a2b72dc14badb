/* Draws the calls of a window, and compares the bars with what SQL over `calls` says. */
#include "collector-server/http/calls_picture.h"
#include "collector-server/query/query.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BAR_CALL, BAR_DEPTH = 2, BAR_COUNT = 8, BAR_LEVELS = 10, BAR_ROW };

static const char path[] = "calls_picture_test.db";
static sqlite3 *database;
static int64_t stream;
static int64_t deepest;

static int64_t number_of(const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Two functions, so that many calls have the function of their caller. */
static int open_trace(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 11,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 4000,
                               .block_events = 500,
                               .functions = 2,
                               .max_depth = 200};
    make_trace(path, &shape, &made);
    free_trace(&made);
    sj_error error = {0};
    if (sj_database_open_reader(path, &database, &error) != SJ_OK) {
        return -1;
    }
    stream = number_of("SELECT stream_id FROM streams");
    deepest = number_of("SELECT max(depth) FROM calls");
    return sqlite3_exec(
               database,
               "PRAGMA query_only = OFF; CREATE TEMP TABLE drawn AS WITH RECURSIVE down(id, at) AS "
               "(SELECT call_id, 0 "
               "FROM calls WHERE parent_id IS NULL UNION ALL SELECT c.call_id, down.at + "
               "(c.function_id <> c.caller_function_id) FROM calls AS c JOIN down ON c.parent_id "
               "= down.id) SELECT id, at, c.depth, c.start_ns, c.end_ns, c.depth > 0 AND "
               "c.function_id = c.caller_function_id AS is_folded FROM down JOIN calls AS c ON "
               "c.call_id = down.id",
               NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : -1;
}

static int close_trace(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

static json_t *draw(sj_calls_window window)
{
    sj_calls_picture *picture = NULL;
    sj_error error = {0};
    json_t *track = json_object();
    window.stream_id = stream;
    window.width = SJ_CALLS_PICTURE_WIDTH;
    assert_int_equal(sj_calls_picture_new(database, 1, &picture, &error), SJ_OK);
    assert_int_equal(sj_calls_picture_draw(picture, &window, track, &error), SJ_OK);
    assert_int_equal(sj_calls_picture_finish(picture, track, &error), SJ_OK);
    sj_calls_picture_free(picture);
    assert_false(json_boolean_value(json_object_get(track, "truncated")));
    assert_string_equal(json_string_value(json_object_get(track, "warnings")), "");
    return track;
}

static int64_t cell(const json_t *bar, size_t column)
{
    return json_integer_value(json_array_get(bar, column));
}

static int64_t calls_in(const json_t *track)
{
    size_t index;
    json_t *bar;
    int64_t calls = 0;
    json_array_foreach(json_object_get(track, "rows"), index, bar)
    {
        calls += cell(bar, BAR_COUNT);
    }
    return calls;
}

/* Checks the row and the depth of each bar by the call it begins with. */
static void check_rows(const json_t *track, const char *row_column)
{
    size_t index;
    json_t *bar;
    json_array_foreach(json_object_get(track, "rows"), index, bar)
    {
        char *sql = sqlite3_mprintf(
            "SELECT count(*) FROM drawn WHERE id = %s AND depth = %lld AND %s = %lld",
            json_string_value(json_array_get(bar, BAR_CALL)), (long long)cell(bar, BAR_DEPTH),
            row_column, (long long)cell(bar, BAR_ROW));
        assert_int_equal(number_of(sql), 1);
        sqlite3_free(sql);
    }
}

static void rows_equal_depths_without_folding(void **state)
{
    (void)state;
    json_t *all = draw((sj_calls_window){.to_ns = INT64_MAX / 4, .row_count = 4096});
    assert_int_equal(calls_in(all), number_of("SELECT count(*) FROM calls"));
    assert_int_equal(json_integer_value(json_object_get(all, "levels")), deepest + 1);
    check_rows(all, "depth");
    json_decref(all);
}

static void any_row_can_be_requested(void **state)
{
    (void)state;
    json_t *part =
        draw((sj_calls_window){.to_ns = INT64_MAX / 4, .first_row = deepest - 3, .row_count = 3});
    char *sql = sqlite3_mprintf("SELECT count(*) FROM calls WHERE depth BETWEEN %lld AND %lld",
                                (long long)deepest - 3, (long long)deepest - 1);
    assert_int_equal(calls_in(part), number_of(sql));
    assert_true(calls_in(part) > 0);
    assert_true(json_integer_value(json_object_get(part, "levels")) >= deepest + 1);
    check_rows(part, "depth");
    sqlite3_free(sql);
    json_decref(part);
}

static void folded_recursion_takes_one_row(void **state)
{
    (void)state;
    json_t *folded =
        draw((sj_calls_window){.to_ns = INT64_MAX / 4, .row_count = deepest, .folds = true});
    assert_true(json_is_true(json_object_get(folded, "is_folded")));
    assert_int_equal(calls_in(folded), number_of("SELECT count(*) FROM drawn WHERE NOT is_folded"));
    assert_int_equal(json_integer_value(json_object_get(folded, "levels")),
                     number_of("SELECT max(at) + 1 FROM drawn"));
    check_rows(folded, "at");
    json_decref(folded);
    json_t *shallow =
        draw((sj_calls_window){.to_ns = INT64_MAX / 4, .row_count = 4096, .folds = true});
    assert_true(json_is_false(json_object_get(shallow, "is_folded")));
    assert_int_equal(calls_in(shallow), number_of("SELECT count(*) FROM calls"));
    json_decref(shallow);
}

/* The window begins within the deepest call. Its bar must count the levels that were open. */
static void a_bar_counts_the_levels_that_it_folds(void **state)
{
    (void)state;
    const int64_t at = number_of("SELECT (start_ns + end_ns) / 2 FROM drawn WHERE end_ns - "
                                 "start_ns > 2 ORDER BY depth DESC, id LIMIT 1");
    const int64_t rows = number_of("SELECT max(at) + 1 FROM drawn");
    json_t *track =
        draw((sj_calls_window){.from_ns = at, .to_ns = at, .row_count = rows, .folds = true});
    size_t index;
    json_t *bar;
    int64_t levels = 0;
    json_array_foreach(json_object_get(track, "rows"), index, bar)
    {
        levels += cell(bar, BAR_LEVELS);
    }
    char *sql = sqlite3_mprintf("SELECT count(*) FROM drawn WHERE start_ns <= %lld AND end_ns >= "
                                "%lld",
                                (long long)at, (long long)at);
    assert_int_equal(levels, number_of(sql));
    assert_true(levels > (int64_t)json_array_size(json_object_get(track, "rows")));
    sqlite3_free(sql);
    json_decref(track);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_depths_without_folding),
        cmocka_unit_test(any_row_can_be_requested),
        cmocka_unit_test(folded_recursion_takes_one_row),
        cmocka_unit_test(a_bar_counts_the_levels_that_it_folds),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
