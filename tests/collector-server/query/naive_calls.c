#include "tests/collector-server/query/naive_calls.h"

#include "collector-server/query/query.h"
#include "collector-server/store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 17 /* the columns behind these, costs, are NULL */ };

trace made;
sqlite3 *database;

/* Adds phases that follow each other, overlap and never end, and values of every seventh call. */
static void add_marks_and_values(const char *path)
{
    static const char marks[] =
        "INSERT INTO marks (session_id, number, name, is_end, at_ns) VALUES (1, 1, 'a', 0, 1000),"
        " (1, 2, 'b', 0, 2500), (1, 3, 'b', 1, 4000), (1, 4, 'a', 1, 6000), (1, 5, 'c', 0, 6000),"
        " (1, 6, 'c', 1, 6100), (1, 7, 'b', 0, 9000), (2, 1, 'a', 0, -5), (2, 2, 'a', 1, 800)";
    static const char values[] =
        "INSERT INTO arguments (session_id, call_id, position, kind, value)"
        " VALUES (?, ?, ?, 'int', ?)";
    sqlite3 *writer;
    sqlite3_stmt *insert;
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    sqlite3_exec(writer, "BEGIN", NULL, NULL, NULL);
    assert_int_equal(sqlite3_exec(writer, marks, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(writer, values, -1, &insert, NULL), SQLITE_OK);
    for (size_t i = 0; i < made.count; i += 7) {
        sqlite3_bind_int64(insert, 1, made.calls[i].session_id);
        sqlite3_bind_int64(insert, 2, made.calls[i].call_id);
        sqlite3_bind_int64(insert, 3, (sqlite3_int64)(i % 2));
        sqlite3_bind_int64(insert, 4, (sqlite3_int64)(i % 5));
        assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(writer);
}

int open_naive_calls(const char *path)
{
    const trace_shape shape = {.seed = 5,
                               .sessions = 2,
                               .streams = 2,
                               .calls = 1500,
                               .block_events = 128,
                               .functions = 40,
                               .max_depth = 30,
                               .leave_open = true,
                               .keep_calls = true,
                               .tail_calls = true};
    make_trace(path, &shape, &made);
    add_marks_and_values(path);
    sj_error error = {0};
    if (sj_database_open_reader(path, &database, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    /* creates the naive table, with which every answer is compared */
    sqlite3_exec(database, "PRAGMA query_only = 0", NULL, NULL, NULL);
    sqlite3_exec(database, "CREATE TEMP TABLE naive AS SELECT * FROM calls LIMIT 0", 0, 0, 0);
    sqlite3_stmt *insert;
    if (sqlite3_prepare_v2(database,
                           "INSERT INTO naive VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                           "?,?,?,?,?,?)",
                           -1, &insert, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(database));
        return -1;
    }
    static const char *const endings[] = {"returned", "unwound", "open", "truncated"};
    sqlite3_exec(database, "BEGIN", NULL, NULL, NULL);
    for (size_t i = 0; i < made.count; ++i) {
        const made_call *call = &made.calls[i];
        const int64_t values[COLUMNS] = {
            call->call_id,
            call->session_id,
            call->stream_id,
            call->thread_id,
            call->function_id,
            call->parent_id,
            call->depth,
            call->start_ns,
            call->end_ns,
            call->end_ns < 0 ? -1 : call->end_ns - call->start_ns,
            call->end_ns < 0 ? -1 : call->self_ns,
            0,
            0,
            call->caller_function_id,
            call->tail_caller_id,
            call->physical_parent_id,
            call->left_ns >= 0  ? call->left_ns - call->start_ns
            : call->end_ns >= 0 ? call->end_ns - call->start_ns
                                : -1,
        };
        for (int column = 0; column < COLUMNS; ++column) {
            if (values[column] >= 0) {
                sqlite3_bind_int64(insert, column + 1, values[column]);
            } else {
                sqlite3_bind_null(insert, column + 1);
            }
        }
        sqlite3_bind_text(insert, 12, endings[call->ending], -1, SQLITE_STATIC);
        sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
    return 0;
}

int close_naive_calls(void **state)
{
    (void)state;
    sqlite3_close(database);
    free_trace(&made);
    return 0;
}

sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
    return statement;
}

int64_t number_of(const char *sql)
{
    sqlite3_stmt *statement = prepare(sql);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}
