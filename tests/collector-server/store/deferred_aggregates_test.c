/* Aggregates are written less often than blocks. Whatever happens in between, they are as if each
 * commit had written them. SJ_LONG=1: blocks of twice the size. */
#include "collector-server/store/verify.h"
#include "tests/collector-server/store/lab_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { AN_HOUR_MS = 3600000, BLOCKS = 6, EVENTS = 500, LONG_EVENTS = 1000 };

/* Returns the number of events in a block. */
static uint32_t event_count(void)
{
    return getenv("SJ_LONG") != NULL ? LONG_EVENTS : EVENTS;
}

static const char notes_sql[] =
    "SELECT stored_blocks, aggregates_valid_before_block FROM sessions ORDER BY session_id";

static void open_lazy_with(lab_file *lab, size_t graph_bytes)
{
    const sj_store_options options = {.path = lab->path,
                                      .create = true,
                                      .callgraph_memory_bytes = graph_bytes,
                                      .aggregates_delay_ms = AN_HOUR_MS};
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
}

static void open_lazy(lab_file *lab)
{
    open_lazy_with(lab, 0);
}

/* Stores `count` blocks with one commit each. */
static void put_blocks(lab_file *lab, int count)
{
    for (int i = 0; i < count; ++i) {
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, event_count(), 0));
        lab_file_commit(lab);
    }
}

/* Returns the rows of a store that writes all aggregates at each commit, for the same frames. */
static char *ask_reference_for(const char *sql, bool counted, int blocks)
{
    lab_file *lab = NULL;
    assert_int_equal(lab_file_set_up((void **)&lab), 0);
    lab->maker.counted = counted;
    lab_file_put_metadata(lab);
    put_blocks(lab, blocks);
    char *totals = lab_file_ask(lab, sql);
    lab_file_tear_down((void **)&lab);
    return totals;
}

static char *ask_reference(int blocks)
{
    return ask_reference_for(lab_file_sums_sql, false, blocks);
}

static int set_up_lazy(void **state)
{
    lab_file *lab = NULL;
    lab_file_set_up((void **)&lab);
    sj_store_close(lab->store);
    snprintf(lab->path, sizeof(lab->path), "late_sums_test.%d.db", (int)getpid());
    lab_file_remove(lab->path);
    open_lazy(lab);
    *state = lab;
    return 0;
}

static void expect_reference(const lab_file *lab, int blocks)
{
    char *reference = ask_reference(blocks);
    lab_file_expect(lab, lab_file_sums_sql, reference);
    sqlite3_free(reference);
}

static void aggregates_are_deferred_until_the_store_is_closed(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    lab_file_expect(lab, notes_sql, "0|1|\n");
    sj_store_close(lab->store);
    lab_file_expect(lab, notes_sql, "6||\n");
    expect_reference(lab, BLOCKS);
    open_lazy(lab);
}

static void an_idle_collector_writes_deferred_aggregates(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    sj_store_maintain(lab->store);
    lab_file_expect(lab, notes_sql, "6||\n");
    expect_reference(lab, BLOCKS);
}

static void the_end_of_a_session_writes_its_aggregates(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_expect(lab, notes_sql, "7||\n"); /* one block ends the open calls */
}

static void sums_of_a_killed_collector_are_recomputed_by_the_next(void **state)
{
    lab_file *lab = *state;
    sj_store_close(lab->store);
    const pid_t child = fork();
    if (child == 0) {
        open_lazy(lab);
        lab_file_put_metadata(lab);
        put_blocks(lab, BLOCKS);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lab_file_expect(lab, notes_sql, "0|1|\n");
    open_lazy(lab);
    lab_file_expect(lab, notes_sql, "0|1|\n"); /* frames can be stored before */
    sj_store_maintain(lab->store);
    lab_file_expect(lab, notes_sql, "6||\n");
    expect_reference(lab, BLOCKS);
}

static void age_files(const lab_file *lab)
{
    static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char name[96];
    assert_int_equal(utimensat(AT_FDCWD, lab->path, long_ago, 0), 0);
    snprintf(name, sizeof(name), "%s-wal", lab->path);
    assert_int_equal(utimensat(AT_FDCWD, name, long_ago, 0), 0);
}

static void a_reader_writes_the_sums_of_a_file_without_a_writer(void **state)
{
    lab_file *lab = *state;
    sqlite3 *reader = NULL;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    assert_int_equal(sqlite3_open(lab->path, &reader), SQLITE_OK);
    assert_int_equal(sj_store_recover_file(lab->path, reader, &lab->error), SJ_OK);
    lab_file_expect(lab, notes_sql, "0|1|\n"); /* the file was written to just now */
    age_files(lab);
    assert_int_equal(sj_store_recover_file(lab->path, reader, &lab->error), SJ_OK);
    lab_file_expect(lab, notes_sql, "6||\n");
    sqlite3_close(reader);
    expect_reference(lab, BLOCKS);
}

static void a_batch_rolled_back_leaves_the_others_to_be_summed(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS - 1);
    lab_file_begin(lab);
    frame_maker_block(&lab->maker, event_count(), 0);
    sj_store_rollback(lab->store);
    lab_file_expect(lab, notes_sql, "0|1|\n");
    sj_store_maintain(lab->store);
    expect_reference(lab, BLOCKS - 1);
}

/* The other writer recomputes the aggregates up to the blocks that it sees. The first writer
 * continues from memory. */
static void another_writer_of_the_file_changes_nothing(void **state)
{
    lab_file *lab = *state;
    lab_file other = *lab;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS / 2);
    open_lazy(&other);
    sj_store_maintain(other.store);
    lab_file_expect(lab, notes_sql, "3||\n");
    put_blocks(lab, BLOCKS - BLOCKS / 2);
    lab_file_expect(lab, notes_sql, "3|4|\n");
    sj_store_maintain(other.store);
    lab_file_expect(lab, notes_sql, "6||\n");
    sj_store_maintain(lab->store);
    sj_store_close(other.store);
    expect_reference(lab, BLOCKS);
}

/* Calls without a clock: the first writer holds the graph all the time. The other reads its state
 * back from the rows. */
static void another_writer_of_the_file_counts_no_estimate_twice(void **state)
{
    static const char estimates_sql[] =
        "SELECT function_id, untimed_calls, sampled_calls, error_ns > 0 FROM function_stats"
        " WHERE untimed_calls > 0 AND untimed_calls < calls ORDER BY 1";
    lab_file *lab = *state;
    lab_file other = *lab;
    lab->maker.counted = true;
    lab_file_put_metadata(lab);
    open_lazy(&other);
    for (int i = 0; i < BLOCKS; i += 2) {
        put_blocks(lab, 2);
        sj_store_maintain(other.store);
        sj_store_maintain(lab->store);
    }
    sj_store_close(other.store);
    char *reference = ask_reference_for(estimates_sql, true, BLOCKS);
    assert_true(strlen(reference) > 1000);
    lab_file_expect(lab, estimates_sql, reference);
    sqlite3_free(reference);
}

static void run_sql(const lab_file *lab, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void a_session_ends_though_its_last_block_has_rotted(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    run_sql(lab,
            "UPDATE blocks SET data = x'00' WHERE block_id = (SELECT max(block_id) FROM blocks)");
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT state, (SELECT count(*) FROM open_calls), (SELECT count(*) FROM blocks)"
                    " FROM sessions",
                    "completed|0|6|\n");
}

static void a_block_that_rots_before_it_is_summed_is_quarantined(void **state)
{
    lab_file *lab = *state;
    sj_store_close(lab->store);
    const pid_t child = fork();
    if (child == 0) {
        open_lazy(lab);
        lab_file_put_metadata(lab);
        put_blocks(lab, BLOCKS);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    run_sql(lab, "UPDATE blocks SET data = zeroblob(length(data)) WHERE block_id = 2");
    open_lazy(lab);
    sj_store_maintain(lab->store);
    lab_file_expect(lab, notes_sql, "5||\n");
    lab_file_expect(lab, "SELECT block_id, quarantined IS NOT NULL FROM blocks WHERE block_id < 4",
                    "1|0|\n2|1|\n3|0|\n");
}

static void aggregates_of_a_removed_session_are_dropped(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    put_blocks(lab, BLOCKS);
    run_sql(lab, "PRAGMA foreign_keys=OFF; DELETE FROM sessions; DELETE FROM blocks;"
                 "DELETE FROM streams");
    sj_store_maintain(lab->store);
    lab_file_expect(lab, "SELECT count(*) FROM call_paths", "0|\n");
    lab_file_begin(lab);
    lab_file_commit(lab);
}

/* Stores two sessions, block by block. In the middle comes a frame that writes aggregates at once,
 * and the end of a stream comes twice. */
static void put_two_sessions(lab_file *lab)
{
    lab_file second = *lab;
    frame_maker_init(&second.maker, 2);
    lab_file_put_metadata(lab);
    lab_file_put_metadata(&second);
    for (int i = 0; i < BLOCKS; ++i) {
        put_blocks(lab, 1);
        put_blocks(&second, 1);
        if (i == BLOCKS / 2) {
            lab_file_begin(lab);
            lab_file_put(lab, frame_maker_gap(&lab->maker, 1, 11));
            lab_file_put(lab, frame_maker_gap(&second.maker, 1, 22));
            lab_file_commit(lab);
        }
    }
    bool duplicate = false;
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 0, 0));
    assert_int_equal(
        lab_file_apply(lab, frame_maker_block(&lab->maker, 0, SJ_BLOCK_LAST), &duplicate), SJ_OK);
    assert_true(duplicate);
    lab_file_commit(lab);
    frame_maker_deinit(&second.maker);
}

static const char all_sums_sql[] =
    "SELECT session_id, stored_blocks, stored_bytes, stored_calls, stored_events, lost_calls"
    " FROM sessions UNION ALL SELECT * FROM (SELECT path_id, calls, total_ns, self_ns,"
    " hex(histogram), hex(state) FROM call_paths ORDER BY 1) UNION ALL SELECT * FROM (SELECT"
    " session_id, function_id, calls, total_ns, self_ns, hex(histogram) FROM function_stats"
    " ORDER BY 1, 2) UNION ALL SELECT * FROM (SELECT session_id, caller_function_id,"
    " callee_function_id, calls, total_ns, self_ns FROM call_edges ORDER BY 1, 2, 3)"
    " UNION ALL SELECT * FROM (SELECT stream_id, calls, first_enter_ns, last_leave_ns, max_depth,"
    " ended FROM streams ORDER BY 1) UNION ALL SELECT * FROM (SELECT stream_id, level, number,"
    " calls, start_ns, path_id FROM timeline ORDER BY 1, 2, 3) UNION ALL SELECT * FROM (SELECT"
    " session_id, function_id, place, call_id, duration_ns, path_id FROM slow_calls"
    " ORDER BY 1, 2, 3)";

/* No graph, one of two, or both fit into memory. The rows are the same. */
static void sessions_without_a_graph_are_summed_from_their_blocks(void **state)
{
    static const size_t memory[] = {1, 100000, 400000, 0};
    lab_file *lab = *state;
    char *expected = NULL;
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); ++i) {
        sj_store_close(lab->store);
        lab_file_remove(lab->path);
        frame_maker_deinit(&lab->maker);
        frame_maker_init(&lab->maker, 1);
        open_lazy_with(lab, memory[i]);
        put_two_sessions(lab);
        sj_store_close(lab->store);
        char *totals = lab_file_ask(lab, all_sums_sql);
        assert_true(strlen(totals) > 1000);
        if (expected == NULL) {
            expected = totals;
            lab_file_expect(lab,
                            "SELECT stored_blocks, lost_calls, aggregates_valid_before_block"
                            " FROM sessions",
                            "7|11||\n6|22||\n");
        } else {
            assert_string_equal(totals, expected);
            sqlite3_free(totals);
        }
        open_lazy_with(lab, memory[i]);
    }
    sqlite3_free(expected);
}

static void put_session(lab_file *lab, uint32_t number, int blocks)
{
    lab->maker.session_number = number;
    lab->maker.next_call = lab->maker.next_event = lab->maker.depth = 0;
    lab_file_put_metadata(lab);
    put_blocks(lab, blocks);
}

enum { SESSIONS_LEFT = 4 };

static void put_sessions(lab_file *lab)
{
    for (uint32_t i = 1; i <= SESSIONS_LEFT; ++i) {
        put_session(lab, i, BLOCKS);
    }
}

/* Leaves sessions without aggregates, as a collector does that is killed. */
static void leave_sessions(lab_file *lab)
{
    sj_store_close(lab->store);
    const pid_t child = fork();
    if (child == 0) {
        open_lazy(lab);
        put_sessions(lab);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < SESSIONS_LEFT * BLOCKS; ++i) { /* the maker has made these blocks, too */
        lab->maker.next_call = i % BLOCKS != 0 ? lab->maker.next_call : 0;
        lab->maker.next_event = i % BLOCKS != 0 ? lab->maker.next_event : 0;
        lab->maker.depth = i % BLOCKS != 0 ? lab->maker.depth : 0;
        (void)frame_maker_block(&lab->maker, event_count(), 0);
    }
    lab->maker.session_number = SESSIONS_LEFT;
}

/* Returns the rows of a store that writes all aggregates at once, for the sessions and one more
 * block of the last session. */
static char *ask_sessions(void)
{
    lab_file *lab = NULL;
    assert_int_equal(lab_file_set_up((void **)&lab), 0);
    put_sessions(lab);
    put_blocks(lab, 1);
    char *totals = lab_file_ask(lab, all_sums_sql);
    lab_file_tear_down((void **)&lab);
    return totals;
}

static const char left_sql[] =
    "SELECT count(*) FROM sessions WHERE aggregates_valid_before_block IS NOT NULL";

/* Frames are stored before any sum of the killed collector is recomputed, and meanwhile, although
 * the new collector is never idle. */
static void a_busy_collector_recomputes_sums_between_frames(void **state)
{
    lab_file *lab = *state;
    leave_sessions(lab);
    open_lazy(lab);
    lab_file_expect(lab, left_sql, "4|\n");
    put_blocks(lab, 1);
    lab_file_expect(lab, left_sql, "4|\n");
    lab_file_expect(lab, "SELECT sum(stored_blocks) FROM sessions", "0|\n");
    char *left = NULL;
    do {
        sqlite3_free(left);
        lab_file_begin(lab);
        lab_file_commit(lab);
        sj_store_recover(lab->store);
        left = lab_file_ask(lab, left_sql);
    } while (strcmp(left, "1|\n") != 0); /* the last session is in use: an hour passes */
    sqlite3_free(left);
    sj_store_close(lab->store);
    char *expected = ask_sessions();
    lab_file_expect(lab, all_sums_sql, expected);
    sqlite3_free(expected);
    open_lazy(lab);
}

/* One session has aggregates that cannot be read back. The collector still starts, and the others
 * are recomputed. */
static void a_session_that_cannot_be_recomputed_harms_no_other(void **state)
{
    lab_file *lab = *state;
    leave_sessions(lab);
    run_sql(lab,
            "INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id, depth,"
            " recursive, calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted,"
            " histogram, state, rare) SELECT (3 << 32) + 7, 3, NULL, function_id, 1, 0, 1, 1, 1,"
            " 1, 1, 0, 0, NULL, x'00', 0 FROM functions LIMIT 1");
    open_lazy(lab);
    while (sj_store_maintain(lab->store)) {
    }
    lab_file_expect(
        lab,
        "SELECT session_id FROM sessions WHERE aggregates_valid_before_block IS NOT NULL OR"
        " stored_blocks <> 6",
        "3|\n");
    lab_file_expect(lab, "SELECT count(*) FROM blocks WHERE quarantined IS NOT NULL", "0|\n");
    put_blocks(lab, 1);
}

static void put_of_both(lab_file *lab, lab_file *other, sj_slice (*more)(frame_maker *))
{
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, event_count(), 0));
    lab_file_put(other, frame_maker_block(&other->maker, event_count(), 0));
    if (more != NULL) {
        lab_file_put(lab, more(&lab->maker));
    }
    lab_file_commit(lab);
}

static sj_slice make_gap(frame_maker *maker)
{
    return frame_maker_gap(maker, 1, 11);
}

static const char apart_sql[] =
    "SELECT s.session_id, (SELECT count(*) FROM streams JOIN blocks USING (stream_id)"
    "  WHERE session_id = s.session_id AND quarantined IS NULL), stored_blocks, lost_calls,"
    " aggregates_valid_before_block, quarantine_reason FROM sessions s ORDER BY 1";

/* The call paths of one session are damaged. Its blocks are stored as before, and its aggregates
 * are written when they have been rebuilt. The aggregates of the other session, with blocks in the
 * same batches, are written. */
static void damaged_call_paths_stop_only_the_sums_of_their_session(void **state)
{
    lab_file *lab = *state;
    const sj_store_options at_once = {.path = lab->path};
    put_session(lab, 0, BLOCKS);
    sj_store_close(lab->store);
    run_sql(lab, "UPDATE call_paths SET state = x'00' WHERE depth = 1");
    assert_int_equal(sj_store_open(&at_once, &lab->store, &lab->error), SJ_OK);
    lab_file other = *lab;
    frame_maker_init(&other.maker, 2);
    lab_file_put_metadata(&other);
    put_of_both(lab, &other, make_gap);
    lab_file_expect(lab, apart_sql,
                    "1|7|6|11|7|the call paths of session 1 cannot be read back|\n2|1|1|0|||\n");
    put_of_both(lab, &other, NULL);
    put_of_both(lab, &other, frame_maker_end);
    assert_false(sj_store_maintain(lab->store));
    lab_file_expect(lab, apart_sql,
                    "1|10|6|11|7|the call paths of session 1 cannot be read back|\n2|3|3|0|||\n");
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&at_once, &lab->store, &lab->error), SJ_OK);
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, apart_sql, "1|10|10|11|||\n2|3|3|0|||\n");
    frame_maker_deinit(&other.maker);
}

static void open_with_most_paths(lab_file *lab, uint32_t most_paths, uint32_t aggregates_delay_ms)
{
    const sj_store_options options = {
        .path = lab->path, .most_paths = most_paths, .aggregates_delay_ms = aggregates_delay_ms};
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
}

static void put_small_blocks(lab_file *lab, lab_file *other, int count)
{
    for (int i = 0; i < count; ++i) {
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, event_count(), 0));
        lab_file_put(other, frame_maker_block(&other->maker, 10, 0));
        lab_file_commit(lab);
    }
}

/* Runs with aggregates at each commit and with deferred aggregates. A session with too many call
 * paths is quarantined with the reason, and all its blocks are sound. The aggregates of the other
 * session, from the same batches, are complete. If more paths are allowed, the aggregates are those
 * of a store without limit. */
static void put_too_many_paths(lab_file *lab, uint32_t aggregates_delay_ms)
{
    enum { MOST_PATHS = 40 };
    lab_file_put_metadata(lab);
    open_with_most_paths(lab, MOST_PATHS, aggregates_delay_ms);
    lab_file other = *lab;
    frame_maker_init(&other.maker, 2);
    lab_file_put_metadata(&other);
    put_small_blocks(lab, &other, BLOCKS - 1);
    open_with_most_paths(lab, MOST_PATHS, aggregates_delay_ms);
    other.store = lab->store;
    put_small_blocks(lab, &other, 1); /* also after a restart */
    assert_false(sj_store_maintain(lab->store));
    lab_file_expect(lab, apart_sql, "1|6|0|0|1|it has more than 40 call paths|\n2|6|6|0|||\n");
    lab_file_expect(lab, "SELECT count(*) FROM blocks WHERE quarantined IS NOT NULL", "0|\n");
    lab_file_expect(lab,
                    "SELECT count(*) BETWEEN 1 AND 39, min(session_id), sum(self_ns) > 0"
                    " FROM call_paths",
                    "1|2|1|\n");
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_ELIMIT);
    frame_maker_deinit(&other.maker);
    open_with_most_paths(lab, 0, 0);
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, "SELECT stored_blocks, quarantine_reason FROM sessions", "6||\n6||\n");
}

static char *ask_paths_of_first_session(const lab_file *lab)
{
    return lab_file_ask(lab, "SELECT path_id, function_id, calls, total_ns, self_ns, histogram"
                             " FROM call_paths WHERE session_id = 1 ORDER BY 1");
}

static void deferred_sums_of_too_many_paths_equal_immediate_ones(void **state)
{
    lab_file *late = *state;
    lab_file *prompt = NULL;
    lab_file_set_up((void **)&prompt);
    put_too_many_paths(prompt, 0);
    char *at_once = ask_paths_of_first_session(prompt);
    lab_file_tear_down((void **)&prompt);
    put_too_many_paths(late, AN_HOUR_MS);
    char *put_off = ask_paths_of_first_session(late);
    assert_string_equal(put_off, at_once);
    sqlite3_free(put_off);
    sqlite3_free(at_once);
    lab_file_expect(late, "SELECT count(*) > 300 FROM call_paths WHERE session_id = 1", "1|\n");
}

static const char exact_sql[] =
    "SELECT * FROM (SELECT function_id, calls, total_ns, self_ns, min_ns, max_ns, unwound,"
    "  untrusted, hex(histogram) FROM function_stats ORDER BY 1) UNION ALL"
    " SELECT * FROM (SELECT caller_function_id, callee_function_id, calls, total_ns, self_ns,"
    "  0, 0, 0, '' FROM call_edges WHERE calls > 0 ORDER BY 1, 2) UNION ALL"
    " SELECT count(*), sum(max_depth), sum(calls), 0, 0, 0, 0, 0, '' FROM timeline UNION ALL"
    " SELECT function_id, place, call_id, start_ns, duration_ns, self_ns, ending, flags, ''"
    "  FROM slow_calls";

/* The sums of functions and edges are exact, and every call is in the tree. Each reference to a
 * path names an existing path of the same function. */
static void check_folded(const lab_file *lab)
{
    lab_file_expect(lab,
                    "SELECT (SELECT sum(calls) FROM call_paths)"
                    " = (SELECT sum(calls) FROM function_stats), folded_paths > 0, folded_calls ="
                    " (SELECT sum(calls) FROM call_paths WHERE path_id IN (WITH RECURSIVE r(id) AS"
                    "  (SELECT path_id FROM call_paths WHERE rare UNION ALL SELECT path_id FROM r"
                    "   JOIN call_paths ON parent_path_id = id) SELECT id FROM r)) FROM sessions",
                    "1|1|1|\n");
    lab_file_expect(lab,
                    "SELECT count(*) FROM timeline AS t WHERE path_id IS NOT NULL AND NOT EXISTS"
                    " (SELECT 1 FROM call_paths AS p WHERE p.path_id = t.path_id)",
                    "0|\n");
    lab_file_expect(lab,
                    "SELECT count(*) > 0, sum(s.function_id <> p.function_id) FROM slow_calls AS s"
                    " LEFT JOIN call_paths AS p USING (path_id)",
                    "1|0|\n");
}

static void open_with_budget(lab_file *lab, uint32_t path_budget, uint32_t aggregates_delay_ms)
{
    const sj_store_options options = {
        .path = lab->path, .path_budget = path_budget, .aggregates_delay_ms = aggregates_delay_ms};
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
}

static char *ask_exact_sums(uint32_t path_budget, uint32_t aggregates_delay_ms)
{
    lab_file *lab = NULL;
    lab_file_set_up((void **)&lab);
    lab_file_put_metadata(lab);
    open_with_budget(lab, path_budget, aggregates_delay_ms);
    put_blocks(lab, BLOCKS / 2);
    open_with_budget(lab, path_budget, aggregates_delay_ms); /* reads back what was folded */
    put_blocks(lab, BLOCKS / 2);
    while (sj_store_maintain(lab->store)) {
    }
    open_with_budget(lab, path_budget, 0);
    if (path_budget != 0) {
        check_folded(lab);
    }
    char *sums = lab_file_ask(lab, exact_sql);
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    if (path_budget != 0) {
        check_folded(lab);
    }
    char *rebuilt = lab_file_ask(lab, exact_sql);
    assert_string_equal(rebuilt, sums);
    sqlite3_free(rebuilt);
    lab_file_tear_down((void **)&lab);
    return sums;
}

/* However often paths are folded, and wherever the aggregates are made, sums equal those of a store
 * that keeps all paths. */
static void rare_paths_are_folded_and_every_sum_stays_exact(void **state)
{
    (void)state;
    char *whole = ask_exact_sums(0, 0);
    for (int i = 0; i < 4; ++i) {
        char *folded = ask_exact_sums(i < 2 ? 40 : 200, i % 2 == 0 ? 0 : AN_HOUR_MS);
        assert_string_equal(folded, whole);
        sqlite3_free(folded);
    }
    sqlite3_free(whole);
}

/* A session without rows is folded without writing any. It gets one row for each path when sums are
 * due. After a kill, the blocks give the same rows to the next collector. */
static void paths_are_folded_before_they_have_rows(void **state)
{
    lab_file *lab = *state;
    char *whole = ask_exact_sums(0, 0);
    sj_store_close(lab->store);
    lab->store = NULL;
    const pid_t child = fork();
    if (child == 0) {
        open_lazy(lab);
        open_with_budget(lab, 40, AN_HOUR_MS);
        lab_file_put_metadata(lab);
        put_blocks(lab, BLOCKS);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lab_file_expect(lab, notes_sql, "0|1|\n");
    lab_file_expect(lab, "SELECT count(*) FROM call_paths", "0|\n");
    open_with_budget(lab, 40, AN_HOUR_MS);
    while (sj_store_maintain(lab->store)) {
    }
    lab_file_expect(lab, notes_sql, "6||\n");
    check_folded(lab);
    char *sums = lab_file_ask(lab, exact_sql);
    assert_string_equal(sums, whole);
    sqlite3_free(sums);
    sqlite3_free(whole);
}

/* Existing rows get their new numbers with the block that has folded the paths. */
static void paths_with_rows_are_folded_with_their_block(void **state)
{
    (void)state;
    lab_file *lab = NULL;
    lab_file_set_up((void **)&lab);
    lab_file_put_metadata(lab);
    open_with_budget(lab, 1000, AN_HOUR_MS);
    put_blocks(lab, BLOCKS / 2);
    open_with_budget(lab, 40, AN_HOUR_MS);
    put_blocks(lab, 1);
    lab_file_expect(lab, notes_sql, "4||\n");
    check_folded(lab);
    lab_file_tear_down((void **)&lab);
}

/* Several commits write the aggregates of many sessions, so that none takes long. */
static void many_sessions_are_summed_a_few_at_a_time(void **state)
{
    enum { SESSIONS = 100 };
    lab_file *lab = *state;
    for (uint32_t i = 1; i <= SESSIONS; ++i) {
        put_session(lab, i, 1);
    }
    lab_file_expect(lab, "SELECT count(*), sum(stored_blocks) FROM sessions", "100|0|\n");
    assert_true(sj_store_maintain(lab->store)); /* some are left */
    while (sj_store_maintain(lab->store)) {
    }
    lab_file_expect(lab, "SELECT count(*), sum(stored_blocks) FROM sessions", "100|100|\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(aggregates_are_deferred_until_the_store_is_closed,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(an_idle_collector_writes_deferred_aggregates, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_session_writes_its_aggregates, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_though_its_last_block_has_rotted,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(sums_of_a_killed_collector_are_recomputed_by_the_next,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_reader_writes_the_sums_of_a_file_without_a_writer,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_batch_rolled_back_leaves_the_others_to_be_summed,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(another_writer_of_the_file_changes_nothing, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(another_writer_of_the_file_counts_no_estimate_twice,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_block_that_rots_before_it_is_summed_is_quarantined,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(aggregates_of_a_removed_session_are_dropped, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(sessions_without_a_graph_are_summed_from_their_blocks,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(many_sessions_are_summed_a_few_at_a_time, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_busy_collector_recomputes_sums_between_frames,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_cannot_be_recomputed_harms_no_other,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(damaged_call_paths_stop_only_the_sums_of_their_session,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(deferred_sums_of_too_many_paths_equal_immediate_ones,
                                        set_up_lazy, lab_file_tear_down),
        cmocka_unit_test(rare_paths_are_folded_and_every_sum_stays_exact),
        cmocka_unit_test_setup_teardown(paths_are_folded_before_they_have_rows, set_up_lazy,
                                        lab_file_tear_down),
        cmocka_unit_test(paths_with_rows_are_folded_with_their_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
