#include "tests/collector-server/store/lab_file.h"

#include "collector-server/store/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void lab_file_open(lab_file *lab, uint64_t max_bytes, size_t graph_bytes)
{
    const sj_store_options options = {.path = lab->path,
                                      .create = true,
                                      .max_bytes = max_bytes,
                                      .callgraph_memory_bytes = graph_bytes};
    const sj_status status = sj_store_open(&options, &lab->store, &lab->error);
    if (status != SJ_OK) {
        print_error("%s\n", lab->error.text);
    }
    assert_int_equal(status, SJ_OK);
}

void lab_file_remove(const char *path)
{
    char name[96];
    unlink(path);
    snprintf(name, sizeof(name), "%s-wal", path);
    unlink(name);
    snprintf(name, sizeof(name), "%s-shm", path);
    unlink(name);
    snprintf(name, sizeof(name), "%s-base", path);
    unlink(name);
}

int lab_file_set_up(void **state)
{
    lab_file *made = calloc(1, sizeof(*made));
    snprintf(made->path, sizeof(made->path), "store_test.%d.db", (int)getpid());
    lab_file_remove(made->path);
    frame_maker_init(&made->maker, 1);
    lab_file_open(made, 0, 0);
    *state = made;
    return 0;
}

int lab_file_tear_down(void **state)
{
    lab_file *used = *state;
    sj_store_close(used->store);
    frame_maker_deinit(&used->maker);
    lab_file_remove(used->path);
    free(used);
    return 0;
}

sj_status lab_file_apply(lab_file *lab, sj_slice frame, bool *duplicate)
{
    sj_frame_view view;
    assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
    return sj_store_apply(lab->store, &view, NULL, duplicate, &lab->error);
}

void lab_file_put(lab_file *lab, sj_slice frame)
{
    bool duplicate = false;
    const sj_status status = lab_file_apply(lab, frame, &duplicate);
    if (status != SJ_OK) {
        print_error("%s\n", lab->error.text);
    }
    assert_int_equal(status, SJ_OK);
    assert_false(duplicate);
}

void lab_file_begin(lab_file *lab)
{
    assert_int_equal(sj_store_begin(lab->store, &lab->error), SJ_OK);
}

void lab_file_commit(lab_file *lab)
{
    const sj_status status = sj_store_commit(lab->store, &lab->error);
    if (status != SJ_OK) {
        print_error("%s\n", lab->error.text);
    }
    assert_int_equal(status, SJ_OK);
}

void lab_file_put_metadata(lab_file *lab)
{
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_hello(&lab->maker));
    lab_file_put(lab, frame_maker_session(&lab->maker));
    lab_file_put(lab, frame_maker_module(&lab->maker));
    lab_file_put(lab, frame_maker_thread(&lab->maker));
    lab_file_commit(lab);
}

char *lab_file_ask(const lab_file *lab, const char *sql)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    sj_error error;
    assert_int_equal(sj_database_open(lab->path, SJ_DATABASE_READ, &database, &error), SJ_OK);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_str *reply = sqlite3_str_new(NULL);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); ++i) {
            sqlite3_str_appendf(reply, "%s|", (const char *)sqlite3_column_text(statement, i));
        }
        sqlite3_str_appendchar(reply, 1, '\n');
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    char *text = sqlite3_str_finish(reply);
    return text != NULL ? text : sqlite3_mprintf("");
}

void lab_file_expect(const lab_file *lab, const char *sql, const char *reply)
{
    char *got = lab_file_ask(lab, sql);
    assert_string_equal(got, reply);
    sqlite3_free(got);
}

void lab_file_run(const lab_file *lab, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

const char lab_file_sums_sql[] =
    "SELECT * FROM (SELECT 'p', path_id & 4294967295, function_id, calls, total_ns, self_ns,"
    " min_ns, max_ns, hex(histogram) FROM call_paths ORDER BY 2) UNION ALL SELECT * FROM"
    " (SELECT 'f', function_id, calls, total_ns, self_ns, min_ns, max_ns, unwound, hex(histogram)"
    " FROM function_stats ORDER BY 2) UNION ALL SELECT * FROM (SELECT 'e', caller_function_id,"
    " callee_function_id, calls, total_ns, self_ns, 0, 0, 0 FROM call_edges ORDER BY 2, 3)"
    " UNION ALL SELECT 's', calls, first_enter_ns, last_leave_ns, max_depth, ended, 0, 0, 0"
    " FROM streams UNION ALL SELECT 'o', call_index, function_id, depth, start_ns, flags, 0, 0, 0"
    " FROM open_calls";
