/* Damage is found, named and quarantined. What can be rebuilt is rebuilt. */
#include "collector-server/store/verify.h"

#include "collector-server/store/block_check.h"
#include "proto/callgraph/callgraph.h"
#include "tests/collector-server/store/lab_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 5, EVENTS = 20000 };

/* The reported findings, one line each. */
typedef struct told {
    char text[4096];
} told;

static const char rows_sql[] =
    "SELECT * FROM (SELECT path_id, parent_path_id, calls, total_ns, self_ns, hex(histogram),"
    " hex(state) FROM call_paths ORDER BY 1) UNION ALL SELECT * FROM (SELECT function_id, calls,"
    " total_ns, self_ns, min_ns, max_ns, hex(histogram) FROM function_stats ORDER BY 1) UNION ALL"
    " SELECT * FROM (SELECT caller_function_id, callee_function_id, calls, total_ns, self_ns, 0, 0"
    " FROM call_edges ORDER BY 1, 2) UNION ALL SELECT * FROM (SELECT function_id, place, call_id,"
    " path_id, start_ns, duration_ns, self_ns FROM slow_calls ORDER BY 1, 2) UNION ALL SELECT *"
    " FROM (SELECT level, number, start_ns, end_ns, calls, max_depth, path_id FROM timeline"
    " ORDER BY 1, 2) UNION ALL SELECT number, calls, first_enter_ns, last_leave_ns, max_depth,"
    " ended, 0 FROM streams UNION ALL SELECT * FROM (SELECT block_id, stream_id, floor_ticks,"
    " hex(calls), 0, 0, 0 FROM block_outlines ORDER BY 1) UNION ALL SELECT stored_blocks, "
    "stored_bytes, stored_calls,"
    " stored_events, lost_calls, lost_events, aggregates_valid_before_block FROM sessions";

static void note(void *context, const sj_finding *finding)
{
    told *all = context;
    const size_t used = strlen(all->text);
    snprintf(all->text + used, sizeof(all->text) - used, "%lld %lld %lld %s\n",
             (long long)finding->session_id, (long long)finding->block_id,
             (long long)finding->calls, finding->what);
}

static sj_verified verify(lab_file *lab, bool check_only, told *all)
{
    sj_verified verified;
    *all = (told){0};
    const sj_verify_options options = {.check_only = check_only, .report = note, .context = all};
    assert_int_equal(sj_store_verify(lab->store, &options, &verified, &lab->error), SJ_OK);
    return verified;
}

static int set_up_blocks(void **state)
{
    lab_file_set_up(state);
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    }
    lab_file_put(lab, frame_maker_gap(&lab->maker, 1, 7));
    lab_file_commit(lab);
    return 0;
}

static void run_sql(const lab_file *lab, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void a_sound_file_gives_no_findings(void **state)
{
    told all;
    const sj_verified verified = verify(*state, false, &all);
    assert_string_equal(all.text, "");
    assert_int_equal(verified.sessions, 1);
    assert_int_equal(verified.blocks, BLOCKS);
    assert_int_equal(verified.bad_blocks + verified.other + verified.freed_blocks, 0);
}

static void rotten_blocks_are_quarantined_until_they_are_whole(void **state)
{
    lab_file *lab = *state;
    told all;
    run_sql(lab, "CREATE TABLE kept AS SELECT block_id, data FROM blocks;"
                 "UPDATE blocks SET data = zeroblob(length(data)) WHERE block_id = 2;"
                 "UPDATE blocks SET data = NULL WHERE block_id = 3;"
                 "UPDATE blocks SET data = (SELECT data FROM kept WHERE block_id = 5)"
                 " WHERE block_id = 4");
    sj_verified verified = verify(lab, true, &all);
    assert_int_equal(verified.bad_blocks, 3);
    lab_file_expect(lab, "SELECT count(*) FROM blocks WHERE quarantined IS NOT NULL", "0|\n");
    verified = verify(lab, false, &all);
    assert_int_equal(verified.bad_blocks, 3);
    assert_non_null(strstr(all.text, "1 2 "));
    assert_non_null(strstr(all.text, " corrupt data\n"));
    assert_non_null(strstr(all.text, " its bytes are missing\n"));
    assert_non_null(strstr(all.text, " its bytes are those of another block\n"));
    lab_file_expect(lab, "SELECT group_concat(block_id) FROM blocks WHERE quarantined IS NULL",
                    "1,5|\n");
    run_sql(lab, "UPDATE blocks SET data = (SELECT data FROM kept WHERE kept.block_id ="
                 " blocks.block_id)");
    verified = verify(lab, false, &all);
    assert_string_equal(all.text, "");
    assert_int_equal(verified.freed_blocks, 3);
    lab_file_expect(lab, "SELECT count(*) FROM blocks WHERE quarantined IS NOT NULL", "0|\n");
}

/* True if this process has a temporary file of SQLite open. Such a file has no name. */
static bool has_temporary_file(void)
{
    char name[64];
    char target[256];
    for (int file = 0; file < 100; ++file) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
        const ssize_t size = readlink(name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = '\0';
        if (strstr(target, "/etilqs_") != NULL) {
            return true;
        }
    }
    return false;
}

static void look_for_temporary_file(void *context, const sj_finding *finding)
{
    (void)finding;
    *(bool *)context = has_temporary_file();
}

/* Sums that are recomputed beside the stored ones may exceed the memory. */
static void verify_recomputes_sums_in_a_temporary_file(void **state)
{
    lab_file *lab = *state;
    bool is_in_file = false;
    sj_verified verified;
    const sj_verify_options options = {
        .check_only = true, .report = look_for_temporary_file, .context = &is_in_file};
    run_sql(lab, "UPDATE sessions SET name = hex(zeroblob(10000000));"
                 "UPDATE call_paths SET self_ns = self_ns + 1");
    assert_int_equal(sj_store_verify(lab->store, &options, &verified, &lab->error), SJ_OK);
    assert_int_equal(verified.other, 1);
    assert_true(is_in_file);
    assert_false(has_temporary_file());
}

/* Changes times by a second or a nanosecond: everything that a row says about calls must follow
 * from the blocks. */
static void altered_times_and_calls_are_found(void **state)
{
    static const char path[] = "path_id = (SELECT max(path_id) FROM call_paths)";
    static const char function[] = "function_id = (SELECT max(function_id) FROM function_stats)";
    static const char edge[] = "(caller_function_id, callee_function_id) ="
                               " (SELECT caller_function_id, callee_function_id FROM call_edges"
                               " WHERE calls > 1 LIMIT 1)";
    static const char slow[] =
        "(function_id, place) = (SELECT function_id, place FROM slow_calls LIMIT 1)";
    static const char step[] =
        "(stream_id, level, number) = (SELECT stream_id, level, number FROM timeline LIMIT 1)";
    static const char *const changes[][3] = {
        {"call_paths", "total_ns = total_ns + 1000000000", path},
        {"call_paths", "self_ns = self_ns + 1", path},
        {"function_stats", "max_ns = max_ns + 1", function},
        {"call_edges", "self_ns = self_ns - 1", edge},
        {"slow_calls", "duration_ns = duration_ns + 1000000000", slow},
        {"timeline", "end_ns = end_ns + 1000000000", step},
        {"streams", "last_leave_ns = last_leave_ns + 1", "stream_id = 1"}};
    lab_file *lab = *state;
    told all;
    char sql[512];
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); ++i) {
        char *const table = (char *)(uintptr_t)changes[i][0];
        snprintf(sql, sizeof(sql),
                 "CREATE TABLE kept AS SELECT * FROM %s; UPDATE %s SET %s WHERE %s", table, table,
                 changes[i][1], changes[i][2]);
        run_sql(lab, sql);
        const sj_verified verified = verify(lab, true, &all);
        snprintf(sql, sizeof(sql), "in 1 rows of %s do not follow", table);
        assert_non_null(strstr(all.text, sql));
        assert_int_equal(verified.other, 1);
        snprintf(sql, sizeof(sql),
                 "PRAGMA foreign_keys = OFF; DELETE FROM %s; INSERT INTO %s SELECT * FROM kept;"
                 " DROP TABLE kept",
                 table, table);
        run_sql(lab, sql);
    }
    assert_int_equal(verify(lab, false, &all).other, 0);
    assert_string_equal(all.text, "");
    lab_file_begin(lab); /* the store writes to the file again, not beside it */
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT stored_blocks FROM sessions", "6|\n");
    assert_int_equal(verify(lab, false, &all).other, 0);
}

/* Blocks of several threads come in any order. Of equally long calls the first ones are kept. */
static void equally_long_calls_may_be_kept_in_any_order(void **state)
{
    lab_file *lab = *state;
    told all;
    run_sql(lab, "CREATE TABLE kept AS SELECT * FROM slow_calls;"
                 "CREATE TABLE pair AS SELECT function_id, a.place + b.place AS places"
                 " FROM kept AS a JOIN kept AS b USING (function_id, duration_ns)"
                 " WHERE a.place < b.place LIMIT 1;"
                 "UPDATE slow_calls SET (call_id, path_id, start_ns, self_ns) = (SELECT k.call_id,"
                 " k.path_id, k.start_ns, k.self_ns FROM kept AS k, pair AS p WHERE"
                 " k.function_id = p.function_id AND k.place = p.places - slow_calls.place)"
                 " WHERE function_id = (SELECT function_id FROM pair) AND place IN (SELECT a.place"
                 " FROM kept AS a JOIN kept AS b USING (function_id, duration_ns) JOIN pair"
                 " USING (function_id) WHERE a.place + b.place = places AND a.place <> b.place)");
    lab_file_expect(lab,
                    "SELECT count(*) FROM slow_calls JOIN kept USING (function_id, place)"
                    " WHERE slow_calls.call_id <> kept.call_id",
                    "2|\n");
    assert_int_equal(verify(lab, true, &all).other, 0);
    assert_string_equal(all.text, "");
}

/* Queries leave out a block whose stack they cannot read, so `verify` names it, too. */
static void a_block_with_a_bad_stack_is_reported(void **state)
{
    lab_file *lab = *state;
    told all;
    while (lab->maker.depth == 0) {
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, 1, 0));
        lab_file_commit(lab);
    }
    lab->maker.stack[0].function = FRAME_MAKER_FUNCTIONS;
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_deep_frames(&lab->maker));
    lab_file_put(lab, frame_maker_block(&lab->maker, 2, 0));
    lab_file_commit(lab);
    (void)verify(lab, true, &all);
    assert_string_equal(all.text, "");
    run_sql(lab, "UPDATE session_modules SET function_count = function_count - 1");
    (void)verify(lab, true, &all);
    assert_non_null(strstr(all.text, " the stack that it refers to has an unknown function\n"));
    run_sql(lab, "UPDATE session_modules SET function_count = function_count + 1;"
                 "UPDATE blocks SET quarantined = 'damaged' WHERE kind = 2");
    assert_int_equal(verify(lab, true, &all).bad_blocks, 1);
    assert_non_null(strstr(all.text, " the stack that it refers to is missing, or damaged\n"));
    const sj_verified verified = verify(lab, false, &all);
    assert_int_equal(verified.bad_blocks, 0);
    assert_int_equal(verified.freed_blocks, 1);
}

/* Everything that a row says about its block must be in the block. */
static void a_row_that_differs_from_its_block_is_named(void **state)
{
    static const char *const columns[] = {"first_event", "event_count", "first_call", "call_count",
                                          "lost_calls"};
    lab_file *lab = *state;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); ++i) {
        told all;
        char sql[128];
        for (int more = 1; more >= -1; more -= 2) {
            snprintf(sql, sizeof(sql), "UPDATE blocks SET %s = %s %+d WHERE block_id = 2",
                     columns[i], columns[i], more);
            run_sql(lab, sql);
            assert_int_equal(verify(lab, true, &all).bad_blocks, more == 1);
            assert_int_equal(strstr(all.text, " its bytes are those of another block\n") != NULL,
                             more == 1);
        }
    }
}

/* Damages single bytes of a block's data: every seventh of the first 200. Everything else can still
 * be read. */
static void every_damaged_byte_of_a_block_is_found(void **state)
{
    lab_file *lab = *state;
    told all;
    char sql[256];
    for (unsigned at = 0; at < 200; at += 7) {
        snprintf(sql, sizeof(sql),
                 "UPDATE blocks SET data = CAST(substr(data, 1, %u) || x'%02x' ||"
                 " substr(data, %u) AS BLOB) WHERE block_id = 2",
                 at, (at * 37 + 1) & 0xff, at + 2);
        char *before = lab_file_ask(lab, "SELECT hex(data) FROM blocks WHERE block_id = 2");
        run_sql(lab, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT data FROM blocks"
                     " WHERE block_id = 2");
        run_sql(lab, sql);
        char *after = lab_file_ask(lab, "SELECT hex(data) FROM blocks WHERE block_id = 2");
        const sj_verified verified = verify(lab, true, &all);
        assert_int_equal(verified.bad_blocks, strcmp(before, after) != 0);
        run_sql(lab, "UPDATE blocks SET data = (SELECT data FROM kept) WHERE block_id = 2");
        sqlite3_free(before);
        sqlite3_free(after);
    }
}

static void wrong_sums_are_reported_and_recomputed(void **state)
{
    lab_file *lab = *state;
    told all;
    char *before = lab_file_ask(lab, rows_sql);
    lab_file_expect(lab, "SELECT count(*) FROM block_outlines", "5|\n");
    run_sql(lab, "UPDATE sessions SET stored_calls = 3");
    assert_int_equal(verify(lab, false, &all).other, 1);
    assert_non_null(strstr(all.text, "its aggregates count 5 blocks and 3 calls"));
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    assert_int_equal(verify(lab, false, &all).other, 0);
    lab_file_expect(lab, rows_sql, before);
    run_sql(lab, "UPDATE function_stats SET calls = calls + 1");
    /* they do not follow from the blocks either */
    assert_int_equal(verify(lab, false, &all).other, 2);
    assert_non_null(strstr(all.text, "by function"));
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    run_sql(lab, "UPDATE function_stats SET untimed_calls = calls + (function_id < 3)");
    assert_int_equal(verify(lab, false, &all).other, 1);
    assert_non_null(strstr(all.text, "2 functions have more calls without a clock than calls"));
    run_sql(lab, "DELETE FROM function_stats; DELETE FROM call_paths; DELETE FROM call_edges;"
                 "DELETE FROM slow_calls; DELETE FROM timeline; DELETE FROM block_outlines");
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, rows_sql, before);
    sqlite3_free(before);
}

static void missing_timelines_and_slow_calls_are_found_and_made_again(void **state)
{
    lab_file *lab = *state;
    told all;
    char *before = lab_file_ask(lab, rows_sql);
    run_sql(lab, "DELETE FROM timeline; DELETE FROM slow_calls");
    assert_int_equal(verify(lab, false, &all).other, 1);
    assert_non_null(strstr(all.text, "no timeline and no slow calls"));
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, rows_sql, before);
    sqlite3_free(before);
}

static void sums_without_a_rotten_block_are_sound_again(void **state)
{
    lab_file *lab = *state;
    told all;
    run_sql(lab, "UPDATE blocks SET data = zeroblob(10) WHERE block_id = 2");
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, "SELECT stored_blocks FROM sessions", "4|\n");
    const sj_verified verified = verify(lab, false, &all);
    assert_int_equal(verified.bad_blocks, 1);
    assert_int_equal(verified.other, 0);
}

static void aggregates_that_cannot_be_recomputed_are_left_alone(void **state)
{
    lab_file *lab = *state;
    char *before = lab_file_ask(lab, rows_sql);
    assert_int_equal(sj_store_rebuild(lab->store, 99, &lab->error), SJ_ENOTFOUND);
    run_sql(lab, "INSERT INTO profiles VALUES (1, 1, 0, 0, 0, 0, 0)");
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_EUNSUPPORTED);
    lab_file_expect(lab, rows_sql, before);
    sqlite3_free(before);
    /* The store still works. */
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
}

/* Overwrites single pages of the file: every tenth, or every third with SJ_LONG=1. Verifying ends,
 * with a finding. */
static void damaged_pages_are_reported(void **state)
{
    enum { PAGE = 16384 };
    lab_file *lab = *state;
    char page[PAGE];
    run_sql(lab, "PRAGMA wal_checkpoint(TRUNCATE)");
    sj_store_close(lab->store);
    const int file = open(lab->path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    const off_t pages = lseek(file, 0, SEEK_END) / PAGE;
    const off_t step = getenv("SJ_LONG") != NULL ? 3 : 10;
    for (off_t number = 2; number < pages; number += step) {
        told all = {0};
        sj_verified verified = {0};
        char junk[PAGE];
        assert_int_equal(pread(file, page, PAGE, number * PAGE), PAGE);
        memset(junk, 0xa5, sizeof(junk));
        assert_int_equal(pwrite(file, junk, PAGE, number * PAGE), PAGE);
        const sj_store_options options = {.path = lab->path};
        sj_store *store = NULL;
        if (sj_store_open(&options, &store, &lab->error) == SJ_OK) {
            const sj_verify_options check_options = {
                .check_only = true, .report = note, .context = &all};
            const sj_status status = sj_store_verify(store, &check_options, &verified, &lab->error);
            const bool is_free_page = verified.other + verified.bad_blocks == 0;
            sj_store_close(store);
            assert_true(status != SJ_OK || !is_free_page);
        }
        assert_int_equal(pwrite(file, page, PAGE, number * PAGE), PAGE);
    }
    close(file);
    lab_file_open(lab, 0, 0);
    told all;
    assert_int_equal(verify(lab, false, &all).other, 0);
}

static bool lacks_memory;

sj_status __real_sj_callgraph_measure(sj_callgraph *graph, const sj_block *block,
                                      sj_stack_lookup find, void *context,
                                      sj_block_summary *summary);
sj_status __wrap_sj_callgraph_measure(sj_callgraph *graph, const sj_block *block,
                                      sj_stack_lookup find, void *context,
                                      sj_block_summary *summary);
sj_status __wrap_sj_callgraph_measure(sj_callgraph *graph, const sj_block *block,
                                      sj_stack_lookup find, void *context,
                                      sj_block_summary *summary)
{
    return lacks_memory ? SJ_ENOMEM
                        : __real_sj_callgraph_measure(graph, block, find, context, summary);
}

static void a_check_without_memory_says_nothing_about_the_block(void **state)
{
    lab_file *lab = *state;
    sqlite3 *database = NULL;
    sj_block_checker *checker = NULL;
    sj_block_verdict verdict;
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    assert_int_equal(sj_block_checker_new(database, "main", &checker, &lab->error), SJ_OK);
    lacks_memory = true;
    assert_int_equal(sj_block_checker_check(checker, 1, &verdict), SJ_ENOMEM);
    lacks_memory = false;
    assert_int_equal(sj_block_checker_check(checker, 1, &verdict), SJ_OK);
    assert_null(verdict.fault);
    sj_block_checker_free(checker);
    sqlite3_close(database);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_check_without_memory_says_nothing_about_the_block,
                                        set_up_blocks, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_sound_file_gives_no_findings, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(rotten_blocks_are_quarantined_until_they_are_whole,
                                        set_up_blocks, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(altered_times_and_calls_are_found, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(equally_long_calls_may_be_kept_in_any_order, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(verify_recomputes_sums_in_a_temporary_file, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_block_with_a_bad_stack_is_reported, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_row_that_differs_from_its_block_is_named, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(every_damaged_byte_of_a_block_is_found, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(wrong_sums_are_reported_and_recomputed, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(missing_timelines_and_slow_calls_are_found_and_made_again,
                                        set_up_blocks, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(sums_without_a_rotten_block_are_sound_again, set_up_blocks,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(aggregates_that_cannot_be_recomputed_are_left_alone,
                                        set_up_blocks, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(damaged_pages_are_reported, set_up_blocks,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
