/* A session is cut into two databases, which share frames. Joined in either order, they equal the
 * database that got the frames of both. */
#include "collector-server/maintenance/session_copy.h"

#include "collector-server/store/database.h"
#include "collector-server/store/verify.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 3, LONG_ROUNDS = 300, MOST_FRAMES = 40, STREAMS = 3, THREE_FILES = 3 };
enum { FIRST, SECOND, WHOLE };
enum { IN_FIRST = 1, IN_SECOND = 2, IS_ANNOUNCEMENT = 4, IS_END = 8 };

/* A frame, and the parts that get it. */
typedef struct kept_frame {
    uint8_t *bytes;
    size_t size;
    unsigned flags;
} kept_frame;

typedef struct cut_session {
    frame_maker makers[STREAMS];
    kept_frame frames[MOST_FRAMES];
    size_t count;
    uint32_t random;
    char paths[THREE_FILES][64];
} cut_session;

static uint32_t round_count(void)
{
    return getenv("SJ_LONG") != NULL ? LONG_ROUNDS : ROUNDS;
}

static uint32_t below(cut_session *cut, uint32_t limit)
{
    cut->random = cut->random * 1664525u + 1013904223u;
    return (cut->random >> 8) % limit;
}

static void keep(cut_session *cut, sj_slice frame, unsigned flags)
{
    assert_true(cut->count < MOST_FRAMES);
    kept_frame *kept = &cut->frames[cut->count++];
    *kept = (kept_frame){.bytes = malloc(frame.size), .size = frame.size, .flags = flags};
    memcpy(kept->bytes, frame.data, frame.size);
}

static void announce(cut_session *cut)
{
    keep(cut, frame_maker_hello(cut->makers), IS_ANNOUNCEMENT);
    keep(cut, frame_maker_session(cut->makers), IS_ANNOUNCEMENT);
    keep(cut, frame_maker_module(cut->makers), IS_ANNOUNCEMENT);
    for (int i = 0; i < STREAMS; ++i) {
        keep(cut, frame_maker_thread(&cut->makers[i]), IS_ANNOUNCEMENT);
    }
}

/* All streams share a clock. */
static void set_clocks(cut_session *cut, uint64_t ticks)
{
    for (int i = 0; i < STREAMS; ++i) {
        cut->makers[i].ticks = ticks;
    }
}

static void keep_block(cut_session *cut, frame_maker *maker, unsigned flags)
{
    if (maker->depth > 2 && below(cut, 4) == 0) {
        keep(cut, frame_maker_deep_frames(maker), IS_ANNOUNCEMENT);
        cut->makers[0].blocks++;
    }
    maker->lost_calls = below(cut, 5) == 0 ? 1 + below(cut, 9) : 0;
    maker->gap_before = 0;
    keep(cut, frame_maker_block(maker, 20 + below(cut, 300), flags), 0);
    cut->makers[0].blocks++;
    set_clocks(cut, maker->ticks);
}

static void keep_something(cut_session *cut, uint64_t number)
{
    switch (below(cut, 8)) {
    case 0:
        keep(cut, frame_maker_mark(cut->makers, number), 0);
        break;
    case 1:
        keep(cut, frame_maker_report(cut->makers, number, "sizes", "{\"n\":1}"), 0);
        break;
    case 2:
        keep(cut, frame_maker_gap(&cut->makers[below(cut, STREAMS)], number, 1 + below(cut, 9)), 0);
        break;
    default:
        keep_block(cut, &cut->makers[below(cut, STREAMS)], 0);
    }
}

/* Makes frames. Every fourth seed has no end. */
static void make_session(cut_session *cut, uint32_t seed)
{
    *cut = (cut_session){.random = seed};
    for (int i = 0; i < STREAMS; ++i) {
        frame_maker_init(&cut->makers[i], 7);
        cut->makers[i].stream = (uint32_t)i + 1;
        cut->makers[i].random += seed * 7919u + (uint32_t)i;
    }
    announce(cut);
    keep_block(cut, cut->makers, 0);
    const uint32_t count = 3 + below(cut, 17);
    for (uint32_t i = 0; i < count; ++i) {
        keep_something(cut, i + 1);
    }
    if (below(cut, 3) == 0) {
        keep_block(cut, &cut->makers[1], SJ_BLOCK_LAST);
    }
    if (seed % 4 != 0) {
        frame_maker all = cut->makers[0];
        for (int i = 1; i < STREAMS; ++i) {
            all.next_call += cut->makers[i].next_call;
        }
        keep(cut, frame_maker_end(&all), IS_END);
    }
    for (int i = 0; i < THREE_FILES; ++i) {
        snprintf(cut->paths[i], sizeof(cut->paths[i]), "join_test.%d.%d.db", (int)getpid(), i);
        lab_file_remove(cut->paths[i]);
    }
}

static void run_sql(const char *path, const char *sql)
{
    lab_file lab = {0};
    snprintf(lab.path, sizeof(lab.path), "%.60s", path);
    lab_file_run(&lab, sql);
}

static void free_session(cut_session *cut)
{
    for (size_t i = 0; i < cut->count; ++i) {
        free(cut->frames[i].bytes);
    }
    for (int i = 0; i < STREAMS; ++i) {
        frame_maker_deinit(&cut->makers[i]);
    }
    for (int i = 0; i < THREE_FILES; ++i) {
        lab_file_remove(cut->paths[i]);
    }
}

/* Cuts the session at two places. Both parts have the frames between them, or none has. */
static void cut_in_two(cut_session *cut)
{
    const size_t end_of_first = below(cut, (uint32_t)cut->count + 1);
    const size_t begin_of_second = below(cut, (uint32_t)cut->count + 1);
    for (size_t i = 0; i < cut->count; ++i) {
        const bool is_both = (cut->frames[i].flags & IS_ANNOUNCEMENT) != 0;
        cut->frames[i].flags |= (is_both || i < end_of_first ? IN_FIRST : 0u) |
                                (is_both || i >= begin_of_second ? IN_SECOND : 0u);
    }
}

/* Gives each frame to one part, to both or to none. */
static void deal_out(cut_session *cut)
{
    for (size_t i = 0; i < cut->count; ++i) {
        const bool is_both = (cut->frames[i].flags & IS_ANNOUNCEMENT) != 0;
        cut->frames[i].flags |= is_both ? IN_FIRST | IN_SECOND : below(cut, 4);
    }
}

/* Keeps a block that leaves calls open. */
static void keep_open_block(cut_session *cut, unsigned flags)
{
    keep_block(cut, cut->makers, 0);
    while (cut->makers[0].depth == 0) {
        cut->frames[cut->count - 1].flags = flags;
        keep_block(cut, cut->makers, 0);
    }
    cut->frames[cut->count - 1].flags = flags;
}

static sj_store *open_store(const char *path)
{
    sj_store *store = NULL;
    sj_error error = {0};
    const sj_store_options options = {.path = path, .create = true};
    if (sj_store_open(&options, &store, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

/* Stores the frames from `first` to before `end` that have one of `flags`. */
static void put_frames(const cut_session *cut, sj_store *store, unsigned flags, size_t first,
                       size_t end)
{
    sj_error error = {0};
    assert_int_equal(sj_store_begin(store, &error), SJ_OK);
    for (size_t i = first; i < end; ++i) {
        const kept_frame *frame = &cut->frames[i];
        sj_frame_view view;
        bool duplicate = false;
        if ((frame->flags & flags) == 0) {
            continue;
        }
        assert_int_equal(sj_frame_read((sj_slice){frame->bytes, frame->size}, &view), SJ_OK);
        if (sj_store_apply(store, &view, NULL, &duplicate, &error) != SJ_OK) {
            fail_msg("frame %zu: %s", i, error.text);
        }
    }
    assert_int_equal(sj_store_commit(store, &error), SJ_OK);
}

static void fill(const cut_session *cut, int file, unsigned flags)
{
    lab_file_remove(cut->paths[file]);
    sj_store *store = open_store(cut->paths[file]);
    put_frames(cut, store, flags, 0, cut->count);
    sj_store_close(store);
}

static sj_status join(const char *source, const char *path, sj_error *error)
{
    sqlite3 *target = NULL;
    sj_copied_session copied = {0};
    error->text[0] = '\0';
    assert_int_equal(sj_database_open(path, SJ_DATABASE_WRITE, &target, error), SJ_OK);
    const sj_status status = sj_session_copy(source, 1, target, &copied, error);
    sqlite3_close(target);
    return status;
}

/* All that is stored, without ids that depend on the order of storing. */
static const char facts_sql[] =
    "WITH paths AS (SELECT path_id, function_id || '' AS names FROM call_paths WHERE parent_path_id"
    " IS NULL OR parent_path_id & 4294967295 = 0 UNION ALL SELECT c.path_id, names || '/' ||"
    " c.function_id FROM paths AS p JOIN call_paths AS c ON c.parent_path_id = p.path_id)"
    "SELECT * FROM (SELECT 'session' AS what, state AS a, ended_ticks AS b, sent_calls AS c,"
    " sent_blocks AS d, stored_blocks || ' ' || stored_calls || ' ' || stored_events || ' ' ||"
    " stored_bytes AS e, lost_calls || ' ' || lost_events AS f, missing_calls || ' ' ||"
    " missing_events || ' ' || missing_blocks AS g FROM sessions"
    " UNION ALL SELECT 'function', function_id, calls, total_ns, self_ns, min_ns, max_ns,"
    " hex(histogram) FROM function_stats"
    " UNION ALL SELECT 'edge', caller_function_id, callee_function_id, calls, total_ns, self_ns,"
    " 0, 0 FROM call_edges"
    " UNION ALL SELECT 'path', names, calls, total_ns, self_ns, min_ns, max_ns, hex(histogram)"
    " FROM paths JOIN call_paths USING (path_id)"
    " UNION ALL SELECT 'slow', function_id, place, duration_ns, 0, 0, 0, 0 FROM slow_calls"
    " UNION ALL SELECT 'timeline', s.number, level, t.number, t.start_ns, t.end_ns, t.calls,"
    " t.max_depth FROM timeline AS t JOIN streams AS s USING (stream_id)"
    " UNION ALL SELECT 'stream', number, calls, first_enter_ns, last_leave_ns, max_depth, ended,"
    " own_stack FROM streams"
    " UNION ALL SELECT 'open', s.number, call_index, function_id, depth, start_ns, flags, 0 FROM"
    " open_calls JOIN streams AS s USING (stream_id)"
    " UNION ALL SELECT 'gap', s.number, g.number, reason, g.calls, events, start_ns, end_ns"
    " FROM gaps AS g LEFT JOIN streams AS s USING (stream_id)"
    " UNION ALL SELECT 'block', s.number, kind, first_event, event_count, first_call, first_ticks,"
    " hex(data) FROM blocks JOIN streams AS s USING (stream_id)"
    " UNION ALL SELECT 'outline', s.number, kind, first_event, floor_ticks, hex(o.calls), 0, 0 FROM"
    " block_outlines AS o JOIN blocks AS b USING (block_id) JOIN streams AS s ON s.stream_id ="
    " b.stream_id"
    " UNION ALL SELECT 'thread', number, tid, name, is_main, started_ns, ended_ns, 0 FROM threads"
    " UNION ALL SELECT 'module', number, module_id, first_function, function_count, hooked_count,"
    " 0, 0 FROM session_modules"
    " UNION ALL SELECT 'mark', number, name, is_end, at_ns, source, 0, 0 FROM marks"
    " UNION ALL SELECT 'report', number, at_ns, monitor, kind, payload, 0, 0 FROM reports)"
    " ORDER BY what, a, b, c, d, e, f, g";

static char *facts_of(const char *path, const char *sql)
{
    lab_file lab = {0};
    snprintf(lab.path, sizeof(lab.path), "%.60s", path);
    return lab_file_ask(&lab, sql);
}

static void print_difference(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    print_error("one has: %.300s\nthe other: %.300s\n", left, right);
}

/* True if both databases hold the same. */
static bool are_equal(const char *left_path, const char *right_path, const char *sql)
{
    char *left = facts_of(left_path, sql);
    char *right = facts_of(right_path, sql);
    const bool is_equal = strcmp(left, right) == 0;
    if (!is_equal) {
        print_difference(left, right);
    }
    sqlite3_free(left);
    sqlite3_free(right);
    return is_equal;
}

static void print_finding(void *context, const sj_finding *finding)
{
    (void)context;
    print_error("session %lld, block %lld: %s\n", (long long)finding->session_id,
                (long long)finding->block_id, finding->what);
}

static void assert_sound(const char *path)
{
    sj_error error = {0};
    sj_verified verified;
    sj_store *store = open_store(path);
    const sj_verify_options options = {.report = print_finding};
    assert_int_equal(sj_store_verify(store, &options, &verified, &error), SJ_OK);
    sj_store_close(store);
    assert_int_equal(verified.bad_blocks, 0);
    assert_int_equal(verified.other, verified.missing);
}

/* Joins the parts in both orders. The results agree with each other and, in what `sql` selects,
 * with the whole. */
static void check_both_orders(const cut_session *cut, uint32_t seed, const char *sql)
{
    sj_error error;
    char copy[96];
    fill(cut, FIRST, IN_FIRST);
    fill(cut, SECOND, IN_SECOND);
    fill(cut, WHOLE, IN_FIRST | IN_SECOND);
    snprintf(copy, sizeof(copy), "%s.copy", cut->paths[FIRST]);
    lab_file_remove(copy);
    char vacuum[128];
    snprintf(vacuum, sizeof(vacuum), "VACUUM INTO '%s'", copy);
    run_sql(cut->paths[FIRST], vacuum);
    const sj_status status = join(cut->paths[SECOND], cut->paths[FIRST], &error);
    if (status != SJ_OK && status != SJ_EEXIST) {
        fail_msg("seed %u: %s", seed, error.text);
    }
    const sj_status other = join(copy, cut->paths[SECOND], &error);
    if (other != SJ_OK && other != SJ_EEXIST) {
        fail_msg("seed %u, other order: %s", seed, error.text);
    }
    if (!are_equal(cut->paths[FIRST], cut->paths[WHOLE], sql) ||
        !are_equal(cut->paths[SECOND], cut->paths[FIRST], facts_sql)) {
        fail_msg("seed %u", seed);
    }
    assert_sound(cut->paths[FIRST]);
    assert_sound(cut->paths[SECOND]);
    assert_int_equal(join(copy, cut->paths[FIRST], &error), SJ_EEXIST);
    lab_file_remove(copy);
}

static void a_session_that_was_cut_is_joined_in_both_orders(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= round_count(); ++seed) {
        cut_session cut;
        make_session(&cut, seed);
        cut_in_two(&cut);
        check_both_orders(&cut, seed, facts_sql);
        free_session(&cut);
    }
}

/* The numbers of calls, without times: a collector that gets the end of a session without its last
 * blocks ends open calls too early. */
static const char counts_sql[] =
    "SELECT * FROM (SELECT 'session' AS what, state AS a, sent_calls AS b, stored_calls AS c,"
    " lost_calls - missing_calls AS d, missing_calls AS e FROM sessions"
    " UNION ALL SELECT 'function', function_id, calls, 0, 0, 0 FROM function_stats"
    " UNION ALL SELECT 'edge', caller_function_id, callee_function_id, calls, 0, 0 FROM call_edges"
    " UNION ALL SELECT 'block', s.number, kind, first_event, event_count, hex(data) FROM blocks"
    " JOIN streams AS s USING (stream_id) WHERE kind = 1 AND call_count > 0"
    " UNION ALL SELECT 'gap', s.number, g.number, reason, g.calls, events FROM gaps AS g LEFT JOIN"
    " streams AS s USING (stream_id)"
    " UNION ALL SELECT 'mark', number, name, is_end, at_ns, source FROM marks"
    " UNION ALL SELECT 'report', number, at_ns, monitor, kind, payload FROM reports)"
    " ORDER BY what, a, b, c, d, e";

static void frames_of_two_collectors_in_any_mixture_are_joined(void **state)
{
    (void)state;
    for (uint32_t seed = 1001; seed <= 1000 + round_count(); ++seed) {
        cut_session cut;
        make_session(&cut, seed);
        deal_out(&cut);
        check_both_orders(&cut, seed, counts_sql);
        free_session(&cut);
    }
}

/* The first collector got the end of the session, but neither its second block nor its third. It
 * ended the open calls behind the first block. */
static void an_end_before_later_calls_is_computed_again(void **state)
{
    (void)state;
    cut_session cut;
    make_session(&cut, 8);
    for (size_t i = 0; i < cut.count; ++i) {
        assert_int_equal(cut.frames[i].flags & IS_END, 0);
        cut.frames[i].flags |= IN_FIRST;
    }
    keep_open_block(&cut, IN_FIRST);
    keep_open_block(&cut, 0);
    keep_open_block(&cut, IN_SECOND);
    for (size_t i = 0; i < cut.count; ++i) {
        if ((cut.frames[i].flags & IS_ANNOUNCEMENT) != 0) {
            cut.frames[i].flags |= IN_FIRST | IN_SECOND;
        }
    }
    frame_maker all = cut.makers[0];
    all.next_call += cut.makers[1].next_call + cut.makers[2].next_call;
    keep(&cut, frame_maker_end(&all), IN_FIRST);
    check_both_orders(&cut, 8, counts_sql);
    assert_true(are_equal(cut.paths[FIRST], cut.paths[WHOLE],
                          "SELECT number, ended, calls, last_leave_ns FROM streams WHERE number = 1"
                          " UNION ALL SELECT number, call_index, depth, start_ns FROM open_calls"
                          " JOIN streams USING (stream_id) WHERE number = 1 ORDER BY 1, 2"));
    free_session(&cut);
}

/* Gives the first part the session up to open calls, and its end. Gives the second part the events
 * behind, one block each. So several blocks share events with the block that ended the stream. */
static void make_early_end(cut_session *cut)
{
    make_session(cut, 8);
    for (size_t i = 0; i < cut->count; ++i) {
        cut->frames[i].flags |= IN_FIRST;
    }
    while (cut->makers[0].depth < 3) {
        keep_open_block(cut, IN_FIRST);
    }
    cut->makers[0].lost_calls = 0;
    for (int i = 0; i < 5; ++i) {
        keep(cut, frame_maker_block(cut->makers, 1, 0), IN_SECOND);
        cut->makers[0].blocks++;
    }
    for (size_t i = 0; i < cut->count; ++i) {
        const bool is_both = (cut->frames[i].flags & IS_ANNOUNCEMENT) != 0;
        cut->frames[i].flags |= is_both ? IN_FIRST | IN_SECOND : 0u;
    }
    frame_maker all = cut->makers[0];
    all.next_call += cut->makers[1].next_call + cut->makers[2].next_call;
    keep(cut, frame_maker_end(&all), IN_FIRST);
}

static void several_blocks_replace_one_end(void **state)
{
    (void)state;
    static const char sent_sql[] =
        "SELECT sent_blocks, stored_blocks, missing_blocks FROM sessions";
    cut_session cut;
    make_early_end(&cut);
    check_both_orders(&cut, 8, counts_sql);
    assert_true(are_equal(cut.paths[FIRST], cut.paths[WHOLE], sent_sql));
    assert_true(are_equal(cut.paths[SECOND], cut.paths[WHOLE], sent_sql));
    free_session(&cut);
}

/* The target has lost the bytes of a block that the source has. */
static void a_block_without_bytes_is_replaced(void **state)
{
    (void)state;
    sj_error error;
    cut_session cut;
    make_session(&cut, 3);
    for (size_t i = 0; i < cut.count; ++i) {
        const bool is_both = (cut.frames[i].flags & IS_ANNOUNCEMENT) != 0 || i < cut.count / 2;
        cut.frames[i].flags |= is_both ? IN_FIRST | IN_SECOND : IN_SECOND;
    }
    fill(&cut, FIRST, IN_FIRST);
    fill(&cut, SECOND, IN_SECOND);
    fill(&cut, WHOLE, IN_FIRST | IN_SECOND);
    run_sql(cut.paths[FIRST], "UPDATE blocks SET data = NULL WHERE block_id = 1");
    if (join(cut.paths[SECOND], cut.paths[FIRST], &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    assert_true(are_equal(cut.paths[FIRST], cut.paths[WHOLE], facts_sql));
    assert_sound(cut.paths[FIRST]);
    free_session(&cut);
}

/* Another connection joins a part while the collector has the session in memory. */
static void a_running_collector_sees_the_joined_part(void **state)
{
    (void)state;
    cut_session cut;
    sj_error error;
    make_session(&cut, 6);
    for (size_t i = 0; i < cut.count; ++i) {
        const bool is_second = i >= cut.count / 3 && i < 2 * cut.count / 3;
        const bool is_both = (cut.frames[i].flags & IS_ANNOUNCEMENT) != 0;
        cut.frames[i].flags |= is_both ? IN_FIRST | IN_SECOND : is_second ? IN_SECOND : IN_FIRST;
    }
    fill(&cut, SECOND, IN_SECOND);
    fill(&cut, WHOLE, IN_FIRST | IN_SECOND);
    sj_store *store = open_store(cut.paths[FIRST]);
    put_frames(&cut, store, IN_FIRST, 0, cut.count / 3);
    if (join(cut.paths[SECOND], cut.paths[FIRST], &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    put_frames(&cut, store, IN_FIRST, cut.count / 3, cut.count);
    sj_store_close(store);
    assert_true(are_equal(cut.paths[FIRST], cut.paths[WHOLE], facts_sql));
    assert_sound(cut.paths[FIRST]);
    free_session(&cut);
}

/* Changes that make a part another session's, and what the refusal says. */
static const char *const strange_parts[][2] = {
    {"UPDATE devices SET uuid = zeroblob(16)", "another device has recorded it"},
    {"UPDATE sessions SET started_ticks = started_ticks + 1", "the clock of the session differs"},
    {"UPDATE sessions SET secret_digest = zeroblob(32)", "another recorder has recorded it"},
    {"INSERT INTO profiles VALUES (1, 1, 0, 0, 0, 0, 0)", "it has profiles"},
    {"UPDATE session_modules SET number = 9", "the functions of its modules have other numbers"},
    {"INSERT INTO filtered_frames VALUES (1, 2), (1, 3)", "counts of the same filtered calls"},
};

/* Replaces the first block by one of a maker with other calls. */
static void put_other_block(const char *path)
{
    frame_maker maker;
    sj_frame_view view;
    bool duplicate = false;
    sj_error error = {0};
    sj_store *store = open_store(path);
    frame_maker_init(&maker, 7);
    maker.random += 99;
    assert_int_equal(sj_store_begin(store, &error), SJ_OK);
    for (int i = 0; i < 5; ++i) {
        const sj_slice frame = i == 0   ? frame_maker_hello(&maker)
                               : i == 1 ? frame_maker_session(&maker)
                               : i == 2 ? frame_maker_module(&maker)
                               : i == 3 ? frame_maker_thread(&maker)
                                        : frame_maker_block(&maker, 500, 0);
        assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
        assert_int_equal(sj_store_apply(store, &view, NULL, &duplicate, &error), SJ_OK);
    }
    assert_int_equal(sj_store_commit(store, &error), SJ_OK);
    sj_store_close(store);
    frame_maker_deinit(&maker);
}

static void assert_refused(const cut_session *cut, const char *why)
{
    sj_error error;
    char *before = facts_of(cut->paths[FIRST], facts_sql);
    const sj_status status = join(cut->paths[SECOND], cut->paths[FIRST], &error);
    if (status != SJ_EUNSUPPORTED || strstr(error.text, why) == NULL) {
        fail_msg("%s: %s", why, error.text);
    }
    char *after = facts_of(cut->paths[FIRST], facts_sql);
    assert_string_equal(before, after);
    sqlite3_free(before);
    sqlite3_free(after);
}

static void parts_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    cut_session cut;
    make_session(&cut, 3);
    for (size_t i = 0; i < cut.count; ++i) {
        const bool is_both = (cut.frames[i].flags & IS_ANNOUNCEMENT) != 0 || i < 8;
        cut.frames[i].flags |= is_both ? IN_FIRST | IN_SECOND : IN_SECOND;
    }
    fill(&cut, FIRST, IN_FIRST);
    run_sql(cut.paths[FIRST], "INSERT INTO filtered_frames VALUES (1, 1), (1, 2)");
    for (size_t i = 0; i < sizeof(strange_parts) / sizeof(strange_parts[0]); ++i) {
        fill(&cut, SECOND, IN_SECOND);
        run_sql(cut.paths[SECOND], strange_parts[i][0]);
        if (i == 2) {
            run_sql(cut.paths[FIRST], "UPDATE sessions SET secret_digest = randomblob(32)");
        }
        assert_refused(&cut, strange_parts[i][1]);
    }
    lab_file_remove(cut.paths[SECOND]);
    put_other_block(cut.paths[SECOND]);
    run_sql(cut.paths[FIRST], "UPDATE sessions SET secret_digest = NULL");
    assert_refused(&cut, "and they differ in them");
    free_session(&cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_that_was_cut_is_joined_in_both_orders),
        cmocka_unit_test(frames_of_two_collectors_in_any_mixture_are_joined),
        cmocka_unit_test(an_end_before_later_calls_is_computed_again),
        cmocka_unit_test(several_blocks_replace_one_end),
        cmocka_unit_test(a_block_without_bytes_is_replaced),
        cmocka_unit_test(a_running_collector_sees_the_joined_part),
        cmocka_unit_test(parts_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
