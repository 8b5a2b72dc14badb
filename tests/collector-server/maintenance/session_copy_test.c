/* An imported file may come from anyone. Impossible content is refused, and harms no other
 * session. */
#include "collector-server/maintenance/session_copy.h"

#include "collector-server/store/database.h"
#include "collector-server/store/verify.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 2000, BLOCKS = 3 };

/* Makes an ended session in lab->path. The store stays open. */
static int set_up(void **state)
{
    lab_file_set_up(state);
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    }
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    return 0;
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    char *problem = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    sqlite3_exec(database, "PRAGMA synchronous = OFF", NULL, NULL, NULL); /* dozens of copies */
    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK) {
        print_error("%s: %s\n", sql, problem);
        fail();
    }
    sqlite3_close(database);
}

static int count_rows(sqlite3 *database, const char *table)
{
    char sql[64];
    sqlite3_stmt *row = NULL;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const int count = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    return count;
}

/* Imports the only session of `from` into a new database, which is removed afterwards. */
static sj_status import(const char *from, sj_error *error)
{
    char path[128];
    sqlite3 *target = NULL;
    sj_copied_session copied = {0};
    snprintf(path, sizeof(path), "%s.target", from);
    lab_file_remove(path);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &target, error), SJ_OK);
    const sj_status status = sj_session_copy(from, 1, target, &copied, error);
    assert_int_equal(count_rows(target, "sessions"), status == SJ_OK);
    assert_int_equal(count_rows(target, "modules"), status == SJ_OK);
    sqlite3_close(target);
    lab_file_remove(path);
    return status;
}

static void contradictory_rows_are_refused(void **state)
{
    static const char *const lies[] = {
        "UPDATE modules SET function_count = 9223372036854775800",
        "UPDATE modules SET function_count = function_count - 1",
        "UPDATE modules SET first_function_id = 9223372036854775000",
        "DELETE FROM functions; UPDATE modules SET function_count = 0; UPDATE session_modules SET"
        " function_count = 0; DELETE FROM call_paths; DELETE FROM function_stats; DELETE FROM"
        " call_edges; DELETE FROM slow_calls",
        "UPDATE functions SET symbol = 'main' WHERE function_id = 3",
        "UPDATE functions SET offset = offset + 1 WHERE function_id = 3",
        "UPDATE functions SET size_bytes = size_bytes + 1 WHERE function_id = 3",
        "UPDATE functions SET function_id = 9000000000000000000 WHERE function_id = 3",
        "UPDATE functions SET function_id = 100000 WHERE function_id = 3",
        "UPDATE session_modules SET function_count = 5000000000",
        "UPDATE session_modules SET first_function = 4294967290",
        "UPDATE call_paths SET calls = 9223372036854775807",
        "UPDATE call_paths SET self_ns = -1",
        "UPDATE call_paths SET total_ns = -9223372036854775807 - 1",
        "UPDATE call_paths SET function_id = 100000 WHERE parent_path_id IS NULL",
        "UPDATE call_paths SET parent_path_id = path_id + 1 WHERE parent_path_id IS NOT NULL",
        "UPDATE call_paths SET calls = calls + 1",
        "UPDATE function_stats SET calls = 9223372036854775807",
        "UPDATE call_edges SET callee_function_id = callee_function_id + 100000",
        "UPDATE sessions SET stored_calls = 9223372036854775807",
        "UPDATE sessions SET tick_ns_denominator = 0",
        "UPDATE blocks SET first_call = 274877906944 WHERE block_id = 2",
        "UPDATE blocks SET event_count = -1 WHERE block_id = 2",
        "UPDATE blocks SET block_id = 9223372036854775807 WHERE block_id = 3",
        "UPDATE blocks SET data = substr(data, 1, length(data) - 9) WHERE block_id = 2",
        "UPDATE blocks SET data = (SELECT data FROM blocks WHERE block_id = 3) WHERE block_id = 2",
        "UPDATE blocks SET lost_calls = 5 WHERE block_id = 2",
        "UPDATE sessions SET stored_blocks = stored_blocks + 1",
        "UPDATE sessions SET stored_calls = stored_calls - 1",
        "UPDATE timeline SET start_ns = 9223372036854775807",
        "UPDATE streams SET number = 0",
        "UPDATE slow_calls SET function_id = function_id + 100000",
        "UPDATE slow_calls SET path_id = path_id + 100000 WHERE place = 1",
        "UPDATE slow_calls SET call_id = call_id + (9 << 38) WHERE place = 1",
        "UPDATE timeline SET path_id = 100000",
        "INSERT INTO arguments (session_id, call_id, position, kind, rule, value) VALUES (1, 9 <<"
        " 38, 1, 'int', '', 1)",
        "INSERT INTO call_costs (session_id, call_id, function_id, is_nested) VALUES (1, 1 << 38,"
        " 100000, 0)",
        "INSERT INTO decisions VALUES (1, 1, 1, 1, 100000, 'off', '', 0, 0, 0, 0)",
        "UPDATE hook_plan_functions SET function_id = function_id + 100000",
        "INSERT INTO modules VALUES (2, x'01', x'02', '', '', 5000, 0); UPDATE hook_plans SET"
        " module_id = 2",
    };
    lab_file *lab = *state;
    if (import(lab->path, &lab->error) != SJ_OK) {
        fail_msg("%s", lab->error.text);
    }
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); ++i) {
        char path[128];
        char sql[256];
        snprintf(path, sizeof(path), "%s.lie", lab->path);
        lab_file_remove(path);
        snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", path);
        run_sql(lab->path, sql);
        run_sql(path, lies[i]);
        lab->error.text[0] = '\0';
        const sj_status status = import(path, &lab->error);
        if (status != SJ_EINVAL) {
            print_error("%s: status %d, %s\n", lies[i], (int)status, lab->error.text);
        }
        assert_int_equal(status, SJ_EINVAL);
        assert_non_null(strstr(lab->error.text, "contradicts itself"));
        lab_file_remove(path);
    }
}

/* Adds two findings with one report each, and an account, to the session of a file. */
static void put_finding(const char *path)
{
    run_sql(
        path,
        "INSERT INTO zombies(zombie_id, fingerprint, kind, used_in, freed_in, allocated_in,"
        " reports, first_seen_realtime_ns, last_seen_realtime_ns, state)"
        " VALUES (40, 'known', 'use_after_free', 'f', 'g', 'h', 1, 0, 0, 'open'),"
        " (41, 'new', 'double_free', 'f', 'g', 'h', 1, 0, 0, 'open');"
        "INSERT INTO reports(report_id, session_id, number, at_ns, monitor, kind, payload)"
        " VALUES (500, 1, 90, 7, 'zombies', 'use', '{}'),"
        " (501, 1, 91, 8, 'zombies', 'use', '{}'), (502, 1, 92, 9, 'zombies', 'end', '{}');"
        "INSERT INTO zombie_reports(report_id, zombie_id, session_id, at_ns, thread_name, tid,"
        " size, offset) VALUES (500, 40, 1, 7, 'main', 1, 8, 0), (501, 41, 1, 8, 'main', 1, 8, 0);"
        "INSERT INTO zombie_frames VALUES (500, 'use', 0, 1, 'f', '/m', 0, 1),"
        " (501, 'free', 0, 1, 'g', '/m', 0, 1);"
        "INSERT INTO zombie_events VALUES (501, 0, 'retain', 2, 1, 5, 'f', NULL);"
        "INSERT INTO zombie_accounts(report_id, session_id, not_watched, one_in, guarded,"
        " released, evicted, refused_size, refused_full, refused_memory, uses, suppressed)"
        " VALUES (502, 1, '', 1, 2, 2, 0, 0, 0, 0, 2, 0)");
}

/* Makes a copy of the lab's file in which `table` has no unique key, and two rows of the session
 * with the same numbers. */
static void put_twins(const lab_file *lab, const char *path, const char *table)
{
    char sql[4096];
    sqlite3 *database = NULL;
    sqlite3_stmt *columns = NULL;
    int used = 0;
    lab_file_remove(path);
    snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", path);
    run_sql(lab->path, sql);
    used += snprintf(sql, sizeof(sql),
                     "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;"
                     "CREATE TABLE twins AS SELECT * FROM %s; DROP TABLE %s;"
                     "ALTER TABLE twins RENAME TO %s; INSERT INTO %s SELECT 1",
                     table, table, table, table);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(database, "SELECT name FROM pragma_table_info(?1)", -1, &columns, NULL),
        SQLITE_OK);
    sqlite3_bind_text(columns, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(columns), SQLITE_ROW);
    while (sqlite3_step(columns) == SQLITE_ROW) {
        used += snprintf(sql + used, sizeof(sql) - (size_t)used, ", 1");
    }
    sqlite3_finalize(columns);
    sqlite3_close(database);
    snprintf(sql + used, sizeof(sql) - (size_t)used,
             " WHERE NOT EXISTS (SELECT 1 FROM %s); INSERT INTO %s SELECT * FROM %s WHERE rowid ="
             " (SELECT max(rowid) FROM %s)",
             table, table, table, table);
    run_sql(path, sql);
}

/* A file can lack the keys that make such rows impossible. */
static void twin_rows_are_refused(void **state)
{
    lab_file *lab = *state;
    sqlite3 *database = NULL;
    sqlite3_stmt *tables = NULL;
    sqlite3 *target = NULL;
    sj_copied_session copied = {0};
    char path[128];
    char target_path[128];
    unsigned count = 0;
    put_finding(lab->path);
    snprintf(target_path, sizeof(target_path), "%s.target", lab->path);
    lab_file_remove(target_path);
    assert_int_equal(sj_database_open(target_path, SJ_DATABASE_CREATE, &target, &lab->error),
                     SJ_OK);
    snprintf(path, sizeof(path), "%s.twins", lab->path);
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(
            database,
            "SELECT name FROM sqlite_schema AS t WHERE type = 'table' AND (EXISTS (SELECT 1 FROM"
            " pragma_table_info(t.name) AS c WHERE c.name IN ('session_id', 'stream_id',"
            " 'report_id')) OR name IN ('modules', 'functions', 'hook_plans',"
            " 'hook_plan_functions', 'function_lines', 'inlined_functions', 'devices',"
            " 'device_clocks', 'zombies'))",
            -1, &tables, NULL),
        SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);
        char wanted[96];
        put_twins(lab, path, table);
        lab->error.text[0] = '\0';
        const sj_status status = sj_session_copy(path, 1, target, &copied, &lab->error);
        snprintf(wanted, sizeof(wanted), "two rows of its %s have the same numbers", table);
        if (status != SJ_EINVAL || strstr(lab->error.text, wanted) == NULL) {
            fail_msg("%s: status %d, %s", table, (int)status, lab->error.text);
        }
        lab_file_remove(path);
        count++;
    }
    assert_true(count >= 40);
    assert_int_equal(count_rows(target, "sessions"), 0);
    sqlite3_finalize(tables);
    sqlite3_close(database);
    sqlite3_close(target);
    lab_file_remove(target_path);
}

/* Replaces the second block by one that differs only in a function, which no module has. */
static void put_unknown_functions(const char *path)
{
    frame_maker maker;
    sj_frame_view view;
    sqlite3 *database = NULL;
    sqlite3_stmt *update = NULL;
    frame_maker_init(&maker, 1);
    maker.called_for_first = FRAME_MAKER_FUNCTIONS + 1;
    frame_maker_block(&maker, EVENTS, 0);
    assert_int_equal(sj_frame_read(frame_maker_block(&maker, EVENTS, 0), &view), SJ_OK);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, "UPDATE blocks SET data = ?1 WHERE block_id = 2",
                                        -1, &update, NULL),
                     SQLITE_OK);
    sqlite3_bind_blob64(update, 1, view.payload.data, view.payload.size, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(update), SQLITE_DONE);
    sqlite3_finalize(update);
    sqlite3_close(database);
    frame_maker_deinit(&maker);
}

/* The store refuses frames with such a block. */
static void a_block_that_names_unknown_functions_is_refused(void **state)
{
    lab_file *lab = *state;
    sj_verified verified;
    const sj_verify_options check_options = {0};
    put_unknown_functions(lab->path);
    assert_int_equal(import(lab->path, &lab->error), SJ_EINVAL);
    assert_non_null(strstr(lab->error.text, "is in no module that was sent"));
    assert_int_equal(sj_store_verify(lab->store, &check_options, &verified, &lab->error), SJ_OK);
    assert_int_equal(verified.bad_blocks, 1);
    /* The session is marked now, and queries leave it out. */
    assert_int_equal(import(lab->path, &lab->error), SJ_OK);
}

/* A file of any size is read before other writers must wait for the target. */
static void a_source_is_checked_before_the_target_is_locked(void **state)
{
    lab_file *lab = *state;
    char path[128];
    sqlite3 *target = NULL;
    sqlite3 *writer = NULL;
    sj_copied_session copied = {0};
    snprintf(path, sizeof(path), "%s.target", lab->path);
    lab_file_remove(path);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &target, &lab->error), SJ_OK);
    sj_database_set_patience(target, false);
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sj_session_copy(lab->path, 1, target, &copied, &lab->error), SJ_EAGAIN);
    run_sql(lab->path, "UPDATE streams SET number = 0");
    assert_int_equal(sj_session_copy(lab->path, 1, target, &copied, &lab->error), SJ_EINVAL);
    sqlite3_close(writer);
    sqlite3_close(target);
    lab_file_remove(path);
}

/* Streams with distant numbers do not use up the numbers of calls. */
static void streams_get_the_next_numbers(void **state)
{
    lab_file *lab = *state;
    char path[128];
    sqlite3 *target = NULL;
    sj_copied_session copied = {0};
    run_sql(lab->path, "PRAGMA foreign_keys = OFF;"
                       "UPDATE streams SET stream_id = 30000000;"
                       "UPDATE blocks SET stream_id = 30000000;"
                       "UPDATE timeline SET stream_id = 30000000;"
                       "UPDATE open_calls SET stream_id = 30000000;"
                       "UPDATE block_outlines SET stream_id = 30000000;"
                       "UPDATE slow_calls SET call_id = 30000000 << 38 | (call_id & 274877906943)");
    snprintf(path, sizeof(path), "%s.target", lab->path);
    lab_file_remove(path);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &target, &lab->error), SJ_OK);
    assert_int_equal(sj_session_copy(lab->path, 1, target, &copied, &lab->error), SJ_OK);
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(target,
                                        "SELECT (SELECT max(stream_id) FROM streams), (SELECT"
                                        " max(call_id >> 38) FROM slow_calls), (SELECT count(*)"
                                        " FROM blocks WHERE stream_id = 1)",
                                        -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(row, 0), 1);
    assert_int_equal(sqlite3_column_int(row, 1), 1);
    assert_true(sqlite3_column_int(row, 2) >= BLOCKS);
    sqlite3_finalize(row);
    sqlite3_close(target);
    lab_file_remove(path);
}

static void assert_answer(sqlite3 *database, const char *sql, const char *wanted)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(row, 0), wanted);
    sqlite3_finalize(row);
}

static void findings_of_freed_memory_come_along(void **state)
{
    lab_file *lab = *state;
    char path[128];
    sqlite3 *target = NULL;
    sj_copied_session copied = {0};
    put_finding(lab->path);
    snprintf(path, sizeof(path), "%s.target", lab->path);
    lab_file_remove(path);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &target, &lab->error), SJ_OK);
    run_sql(
        path,
        "INSERT INTO zombies(zombie_id, fingerprint, kind, used_in, freed_in,"
        " allocated_in, reports, first_seen_realtime_ns, last_seen_realtime_ns, state,"
        " resolved_realtime_ns, note)"
        " VALUES (3, 'known', 'use_after_free', 'f', 'g', 'h', 4, 1, 2, 'resolved', 3, 'ours')");
    assert_int_equal(sj_session_copy(lab->path, 1, target, &copied, &lab->error), SJ_OK);
    assert_answer(
        target,
        "SELECT group_concat(fingerprint || ' ' || reports || ' ' || state || ' ' || note)"
        " FROM (SELECT * FROM zombies ORDER BY zombie_id)",
        "known 5 reopened ours,new 1 open ");
    assert_answer(
        target,
        "SELECT group_concat(number || ' ' || fingerprint || ' ' || stack || ' ' || f.function)"
        " FROM reports JOIN zombie_reports z USING (report_id) JOIN zombies USING (zombie_id)"
        " JOIN zombie_frames f USING (report_id)",
        "90 known use f,91 new free g");
    assert_answer(
        target,
        "SELECT (SELECT reports.number FROM zombie_events JOIN reports USING (report_id)) || ' ' ||"
        " (SELECT number FROM zombie_accounts JOIN reports USING (report_id))",
        "91 92");
    assert_answer(target, "SELECT count(*) FROM pragma_foreign_key_check", "0");
    sqlite3_close(target);
    lab_file_remove(path);
    /* an account of a report that is none of the session's */
    run_sql(lab->path, "PRAGMA foreign_keys = OFF; UPDATE zombie_accounts SET report_id = 1");
    assert_int_not_equal(import(lab->path, &lab->error), SJ_OK);
}

/* An earlier version stored a module of a program's identity without functions, before this was
 * refused. */
static void a_false_module_is_not_used_as_the_program(void **state)
{
    lab_file *lab = *state;
    run_sql(lab->path, "PRAGMA foreign_keys = OFF; DELETE FROM functions;"
                       "UPDATE modules SET function_count = 0");
    lab->maker.session_tag = 9;
    lab->maker.next_event = lab->maker.next_call = lab->maker.depth = 0;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    char expected[64];
    snprintf(expected, sizeof(expected), "2|%d|%d|\n", FRAME_MAKER_FUNCTIONS,
             FRAME_MAKER_FUNCTIONS);
    lab_file_expect(lab,
                    "SELECT count(*), sum(function_count), (SELECT count(*) FROM functions AS f"
                    " JOIN modules AS m USING (module_id) WHERE function_id >= first_function_id)"
                    " FROM modules",
                    expected);
}

/* A database that stored such numbers before they were refused can still store new programs. */
static void false_function_numbers_do_not_block_new_programs(void **state)
{
    lab_file *lab = *state;
    run_sql(lab->path,
            "INSERT INTO modules (build_id, functions_digest, path, machine, first_function_id,"
            " function_count) VALUES (x'01', x'02', 'a', '', 1, 9223372036854775800), (x'03',"
            " x'04', 'b', '', 9223372036854775000, 5);"
            "INSERT INTO functions (function_id, module_id, offset, size_bytes, name, symbol,"
            " symbol_key, source) VALUES (9223372036854775807, 2, 0, 1, 'f', 'f', 1, '')");
    lab->maker.session_tag = 9;
    lab->maker.function_count = FRAME_MAKER_FUNCTIONS + 1; /* another module */
    lab->maker.next_event = lab->maker.next_call = lab->maker.depth = 0;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT min(function_id), count(*) FROM functions WHERE module_id ="
                    " (SELECT max(module_id) FROM modules)",
                    "201|201|\n");
}

static void count(void *context, const sj_finding *finding)
{
    unsigned *counts = context;
    counts[finding->session_id < 3 ? finding->session_id : 0]++;
}

static void verify_continues_after_a_broken_session(void **state)
{
    lab_file *lab = *state;
    unsigned counts[3] = {0};
    sj_verified verified;
    lab->maker.session_tag = 9;
    lab->maker.next_event = lab->maker.next_call = lab->maker.depth = 0;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    run_sql(lab->path, "UPDATE call_paths SET calls = 9223372036854775807 WHERE session_id = 1;"
                       "UPDATE function_stats SET calls = calls + 1 WHERE session_id = 2");
    const sj_verify_options options = {.check_only = true, .report = count, .context = counts};
    assert_int_equal(sj_store_verify(lab->store, &options, &verified, &lab->error), SJ_OK);
    /* Its own sums contradict each other, and do not follow from its blocks. */
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(contradictory_rows_are_refused, set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(twin_rows_are_refused, set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_block_that_names_unknown_functions_is_refused, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_source_is_checked_before_the_target_is_locked, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(streams_get_the_next_numbers, set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(findings_of_freed_memory_come_along, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_false_module_is_not_used_as_the_program, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(false_function_numbers_do_not_block_new_programs, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(verify_continues_after_a_broken_session, set_up,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
