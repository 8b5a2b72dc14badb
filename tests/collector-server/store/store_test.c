/* The store keeps each frame once, whatever their order, repetition or contradictions. */
#include "collector-server/store/database.h"
#include "collector-server/store/page_size.h"
#include "collector-server/store/store.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void metadata_is_stored_and_names_are_demangled(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_expect(lab, "SELECT name, tags FROM devices",
                    "bench-1|{\"lab\":\"\\\"berlin\\\"\"}|\n");
    lab_file_expect(lab, "SELECT name FROM functions WHERE function_id IN (1, 2, 10)",
                    "function_0|\nfoo_001(int)|\napp+0x1240|\n");
    lab_file_expect(lab, "SELECT name, reason FROM unhooked_functions",
                    "foo_007(int)|its entry is too short for a jump|\n");
    lab_file_expect(lab, "SELECT function_id, technique FROM hook_plan_functions",
                    "8|none|\n9|part|\n");
    lab_file_expect(lab, "SELECT number, thread_id, own_stack FROM streams", "1|1|1|\n");
}

static void sums_of_a_session_agree_with_each_other(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < 5; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, 4000, i == 4 ? SJ_BLOCK_LAST : 0));
    }
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT stored_blocks, stored_calls = sent_calls, stored_events, state"
                    " FROM sessions",
                    "5|1|20000|completed|\n");
    lab_file_expect(lab,
                    "SELECT (SELECT sum(calls) FROM call_paths) + (SELECT count(*) FROM open_calls)"
                    " = (SELECT stored_calls FROM sessions)",
                    "1|\n");
    lab_file_expect(
        lab,
        "SELECT (SELECT sum(calls) FROM call_paths) = (SELECT sum(calls) FROM"
        " function_stats), (SELECT sum(calls) FROM call_edges) = (SELECT sum(calls) FROM"
        " function_stats)",
        "1|1|\n");
    char open_calls[32];
    snprintf(open_calls, sizeof(open_calls), "%u|\n", lab->maker.depth);
    lab_file_expect(lab, "SELECT count(*) FROM open_calls", open_calls);
}

/* A killed recorder and flight dumps leave streams without an end. */
static void open_calls_of_streams_without_an_end_count_up_to_the_last_event(void **state)
{
    static const char sums_sql[] =
        "SELECT stored_blocks, sent_blocks, (SELECT sum(calls) FROM call_paths) = stored_calls,"
        " (SELECT sum(calls) FROM function_stats) = stored_calls, (SELECT sum(calls) FROM"
        " call_edges) = stored_calls, (SELECT ended FROM streams) FROM sessions";
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < 3; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, 4001, 0));
    }
    assert_true(lab->maker.depth > 0);
    for (int i = 0; i < 2; ++i) { /* the second changes nothing; both say that no block was sent */
        lab_file_put(lab, frame_maker_end(&lab->maker));
        lab_file_commit(lab);
        lab_file_expect(lab, sums_sql, "4|1|1|1|1|1|\n");
        lab_file_begin(lab);
    }
    lab_file_commit(lab);
    char open_calls[32];
    snprintf(open_calls, sizeof(open_calls), "%u|\n", lab->maker.depth);
    lab_file_expect(lab, "SELECT count(*) FROM open_calls", open_calls);
    lab_file_expect(lab,
                    "SELECT last_leave_ns - start_ns <= (SELECT max(max_ns) FROM call_paths AS p"
                    " WHERE p.function_id = o.function_id AND p.depth = 0) FROM open_calls AS o"
                    " JOIN streams USING (stream_id) WHERE o.depth = 0",
                    "1|\n");
}

static void a_frame_that_comes_twice_is_stored_once(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    const sj_slice block = frame_maker_block(&lab->maker, 1000, 0);
    lab_file_put(lab, block);
    bool duplicate = false;
    assert_int_equal(lab_file_apply(lab, block, &duplicate), SJ_OK);
    assert_true(duplicate);
    lab_file_commit(lab);
    char *before = lab_file_ask(lab, lab_file_sums_sql);
    lab_file_begin(lab);
    assert_int_equal(lab_file_apply(lab, block, &duplicate), SJ_OK);
    assert_true(duplicate);
    assert_int_equal(lab_file_apply(lab, frame_maker_module(&lab->maker), &duplicate), SJ_OK);
    assert_true(duplicate);
    lab_file_put(lab, frame_maker_mark(&lab->maker, 1));
    assert_int_equal(lab_file_apply(lab, frame_maker_mark(&lab->maker, 1), &duplicate), SJ_OK);
    assert_true(duplicate);
    lab_file_commit(lab);
    lab_file_expect(lab, lab_file_sums_sql, before);
    lab_file_expect(lab, "SELECT stored_blocks, (SELECT count(*) FROM marks) FROM sessions",
                    "1|1|\n");
    sqlite3_free(before);
}

/* Blocks arrive in another order, with a restart in between, and without memory for call graphs.
 * The aggregates are the same. Functions and edges are compared, because nodes are numbered by
 * arrival. */
static void order_and_restarts_do_not_change_the_sums(void **state)
{
    static const char sums_sql[] =
        "SELECT * FROM (SELECT function_id, calls, total_ns, self_ns, min_ns, max_ns,"
        " hex(histogram) FROM function_stats ORDER BY 1) UNION ALL SELECT * FROM (SELECT"
        " caller_function_id, callee_function_id, calls, total_ns, self_ns, 0, 0 FROM call_edges"
        " ORDER BY 1, 2) UNION ALL SELECT * FROM (SELECT function_id, place, duration_ns,"
        " ending, flags, 0, 0 FROM slow_calls ORDER BY 1, 2) UNION ALL SELECT * FROM"
        " (SELECT level, number, start_ns, end_ns, calls, max_depth, 0 FROM timeline ORDER BY 1, 2)"
        " UNION ALL SELECT * FROM (SELECT level, p.function_id, p.depth, 0, 0, 0, 0 FROM timeline"
        " LEFT JOIN call_paths AS p USING (path_id) ORDER BY level, number)";
    enum { BLOCKS = 6 };
    lab_file *lab = *state;
    sj_slice kept[BLOCKS];
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        const sj_slice block = frame_maker_block(&lab->maker, 7000, 0);
        uint8_t *copy = malloc(block.size);
        memcpy(copy, block.data, block.size);
        kept[i] = (sj_slice){.data = copy, .size = block.size};
        lab_file_put(lab, block);
    }
    lab_file_commit(lab);
    char *straight = lab_file_ask(lab, sums_sql);
    assert_true(strlen(straight) > 1000);
    lab_file_expect(lab, "SELECT count(*) > 100, min(duration_ns) >= 1000 FROM slow_calls",
                    "1|1|\n");
    lab_file_expect(
        lab,
        "SELECT level, count(*), sum(calls) = (SELECT stored_calls FROM sessions),"
        " max(max_depth) = (SELECT max(max_depth) FROM streams) FROM timeline GROUP BY level",
        "14|3|1|1|\n18|1|1|1|\n22|1|1|1|\n");
    sj_store_close(lab->store);
    lab_file_remove(lab->path);
    lab_file_open(lab, 0, 1);
    lab_file_put_metadata(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        if (i == 3) {
            sj_store_close(lab->store);
            lab_file_open(lab, 0, 1);
        }
        lab_file_begin(lab);
        lab_file_put(lab, kept[(i * 5 + 2) % BLOCKS]);
        lab_file_commit(lab);
    }
    lab_file_expect(lab, sums_sql, straight);
    sqlite3_free(straight);
    for (int i = 0; i < BLOCKS; ++i) {
        free((void *)(uintptr_t)kept[i].data);
    }
}

/* Stores blocks with calls without a clock. If `restarts`, the store is reopened before each
 * block. */
static char *count_untimed(lab_file *lab, bool restarts)
{
    enum { BLOCKS = 4 };
    frame_maker_deinit(&lab->maker);
    frame_maker_init(&lab->maker, 1);
    lab->maker.counted = true;
    lab_file_put_metadata(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        if (restarts) {
            sj_store_close(lab->store);
            lab_file_open(lab, 0, 0);
        }
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, 2000, 0));
        lab_file_commit(lab);
    }
    return lab_file_ask(lab, "SELECT function_id % 8, sum(calls), sum(untimed_calls),"
                             " sum(sampled_calls) FROM function_stats GROUP BY 1 ORDER BY 1");
}

static void restarts_do_not_change_what_calls_without_a_clock_are_estimated_by(void **state)
{
    lab_file *lab = *state;
    char *straight = count_untimed(lab, false);
    assert_true(strlen(straight) > 100);
    sj_store_close(lab->store);
    lab_file_remove(lab->path);
    lab_file_open(lab, 0, 0);
    char *restarted = count_untimed(lab, true);
    assert_string_equal(restarted, straight);
    sqlite3_free(straight);
    sqlite3_free(restarted);
}

static void a_rolled_back_batch_leaves_nothing(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 2000, 0));
    sj_store_rollback(lab->store);
    lab_file_expect(lab, "SELECT count(*) FROM blocks", "0|\n");
    frame_maker fresh;
    frame_maker_init(&fresh, 1);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&fresh, 2000, 0));
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT sum(calls) + (SELECT open_depth + call_count FROM blocks) > 0,"
                    " sum(calls) <= (SELECT stored_calls FROM sessions) FROM call_paths",
                    "1|1|\n");
    frame_maker_deinit(&fresh);
}

/* Makes the maker repeat the events that it made after `before`. */
static void rewind_maker(frame_maker *maker, const frame_maker *before)
{
    maker->next_event = before->next_event;
    maker->next_call = before->next_call;
    maker->ticks = before->ticks;
    maker->random = before->random;
    maker->roots = before->roots;
    maker->depth = before->depth;
    memcpy(maker->children, before->children, sizeof(maker->children));
    memcpy(maker->stack, before->stack, sizeof(maker->stack));
}

/* The events are the same, but their numbers differ, because the loss lies between others. */
static void a_repeat_with_its_loss_elsewhere_is_not_a_duplicate(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 100, 0));
    lab->maker.lost_calls = 5;
    lab->maker.gap_before = 40;
    const frame_maker before = lab->maker;
    lab_file_put(lab, frame_maker_block(&lab->maker, 100, 0));
    rewind_maker(&lab->maker, &before);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_OK);
    assert_true(duplicate);
    rewind_maker(&lab->maker, &before);
    lab->maker.gap_before = 60;
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_EEXIST);
    assert_false(duplicate);
    lab_file_commit(lab);
}

static void inconsistent_frames_are_refused_without_ending_the_batch(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    /* a block of a session without a SESSION frame */
    frame_maker stranger;
    frame_maker_init(&stranger, 9);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&stranger, 100, 0), &duplicate),
                     SJ_ENOTFOUND);
    assert_int_equal(lab_file_apply(lab, frame_maker_thread(&stranger), &duplicate), SJ_ENOTFOUND);
    frame_maker_deinit(&stranger);
    /* random bytes as a block and as a header, and an unknown type */
    uint8_t noise[300];
    memset(noise, 0xa5, sizeof(noise));
    const sj_slice bytes = {.data = noise, .size = sizeof(noise)};
    assert_int_equal(
        lab_file_apply(lab, frame_maker_wrap(&lab->maker, SJ_FRAME_BLOCK, (sj_slice){0}, bytes),
                       &duplicate),
        SJ_ECORRUPT);
    assert_int_equal(lab_file_apply(lab,
                                    frame_maker_wrap(&lab->maker, SJ_FRAME_SESSION, bytes, bytes),
                                    &duplicate),
                     SJ_ECORRUPT);
    assert_int_equal(
        lab_file_apply(lab, frame_maker_wrap(&lab->maker, 77, bytes, bytes), &duplicate),
        SJ_EUNSUPPORTED);
    /* a block with a damaged byte, which the block's own crc shows */
    const sj_slice good = frame_maker_block(&lab->maker, 500, 0);
    sj_frame_view view;
    assert_int_equal(sj_frame_read(good, &view), SJ_OK);
    uint8_t *copy = malloc(view.payload.size);
    memcpy(copy, view.payload.data, view.payload.size);
    const size_t size = view.payload.size;
    copy[size / 2] ^= 0x40;
    assert_int_equal(lab_file_apply(lab,
                                    frame_maker_wrap(&lab->maker, SJ_FRAME_BLOCK, (sj_slice){0},
                                                     (sj_slice){.data = copy, .size = size}),
                                    &duplicate),
                     SJ_ECORRUPT);
    copy[size / 2] ^= 0x40;
    lab_file_put(lab, frame_maker_wrap(&lab->maker, SJ_FRAME_BLOCK, (sj_slice){0},
                                       (sj_slice){.data = copy, .size = size}));
    free(copy);
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*), (SELECT count(*) FROM sessions) FROM blocks", "1|1|\n");
}

static void reports_are_stored_once_and_only_json_objects(void **state)
{
    static const struct {
        const char *kind, *payload;
        sj_status status;
    } cases[] = {
        {"use_after_free", "{\"bytes\": 48, \"name\": \"\u00fc\"}", SJ_OK},
        {"use_after_free", "", SJ_ECORRUPT},
        {"use_after_free", "[1]", SJ_ECORRUPT},
        {"use_after_free", "{\"a\": 1} x", SJ_ECORRUPT},
        {"use_after_free", "{\"a\": 1, \"a\": 2}", SJ_ECORRUPT},
        {"use_after_free", "{\"a\": \"\xff\"}", SJ_ECORRUPT},
        {"", "{}", SJ_ECORRUPT},
        {"two words", "{}", SJ_ECORRUPT},
    };
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        bool duplicate = true;
        assert_int_equal(
            lab_file_apply(lab,
                           frame_maker_report(&lab->maker, i + 1, cases[i].kind, cases[i].payload),
                           &duplicate),
            cases[i].status);
        assert_false(duplicate);
    }
    bool duplicate = false;
    assert_int_equal(
        lab_file_apply(lab, frame_maker_report(&lab->maker, 1, "other", "{}"), &duplicate), SJ_OK);
    assert_true(duplicate);
    char *big = malloc(SJ_REPORT_MAX_BYTES + 2);
    memset(big, ' ', SJ_REPORT_MAX_BYTES + 1);
    big[SJ_REPORT_MAX_BYTES + 1] = '\0';
    memcpy(big, "{}", 2);
    assert_int_equal(lab_file_apply(lab, frame_maker_report(&lab->maker, 20, "x", big), &duplicate),
                     SJ_ELIMIT);
    free(big);
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT number, at_ns = 1000 * tick_ns_numerator / tick_ns_denominator, "
                    "process_number, thread_number IS NULL, monitor, kind,"
                    " payload ->> 'bytes' FROM reports JOIN sessions USING (session_id)",
                    "1|1|1|1|heap|use_after_free|48|\n");
}

/* A recorder that was killed and the recorder that recovers its session may both send a report, and
 * an account. */
static void a_report_of_freed_memory_counts_once_under_two_numbers(void **state)
{
    static const struct {
        uint64_t number, ticks;
        const char *kind, *payload;
    } sent[] = {{1, 500, "double_free", "{\"size\": 48, \"offset\": 0, \"use\": {\"tid\": 7}}"},
                {2, 500, "double_free", "{\"size\": 48, \"offset\": 0, \"use\": {\"tid\": 7}}"},
                {3, 900, "double_free", "{\"size\": 48, \"offset\": 0, \"use\": {\"tid\": 7}}"},
                {4, 1000, "account",
                 "{\"uses\": 2, \"pressure_unseen\": \"/proc/pressure/memory\","
                 " \"delayed_one_in_most\": 8}"},
                {5, 2000, "account", "{\"uses\": 2}"}};
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        bool duplicate = false;
        assert_int_equal(
            lab_file_apply(lab,
                           frame_maker_report_of(&lab->maker, "zombies", sent[i].number,
                                                 sent[i].ticks, sent[i].kind, sent[i].payload),
                           &duplicate),
            SJ_OK);
    }
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT reports, (SELECT count(*) FROM zombie_reports), (SELECT count(*) FROM"
                    " reports), (SELECT count(*) FROM zombie_accounts) FROM zombies",
                    "2|2|3|1|\n");
    lab_file_expect(lab, "SELECT uses, pressure_unseen, delayed_one_in_most FROM zombie_accounts",
                    "2|/proc/pressure/memory|8|\n");
}

/* The mistake is two and five levels deep in a recursion. */
static void a_finding_is_one_whatever_the_depth_of_a_recursion(void **state)
{
#define OWN(name) "{\"own\": true, \"function\": \"" name "\", \"module\": \"/opt/app\"}"
    static const char *const sent[] = {
        "{\"size\": 48, \"use\": {\"frames\": [" OWN("walk") "," OWN("walk") "," OWN("main") "]}}",
        "{\"size\": 48, \"use\": {\"frames\": [" OWN("walk") "," OWN("walk") "," OWN(
            "walk") "," OWN("walk") "," OWN("walk") "," OWN("main") "]}}",
        "{\"size\": 48, \"use\": {\"frames\": [" OWN("walk") "," OWN("other") "]}}"};
#undef OWN
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        bool duplicate = false;
        assert_int_equal(lab_file_apply(lab,
                                        frame_maker_report_of(&lab->maker, "zombies", i + 1,
                                                              500 * (i + 1), "use", sent[i]),
                                        &duplicate),
                         SJ_OK);
    }
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT used_in, reports FROM zombies ORDER BY reports DESC",
                    "walk|2|\nwalk|1|\n");
}

/* Only the database notices that these calls name no function. The answer says so and does not ask
 * to wait for disk space. Otherwise the sender would wait for ever, and with it all senders of the
 * batch. */
static void a_frame_that_runs_into_a_constraint_is_refused_alone(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    uint8_t bytes[256];
    Sojourn__Filtered filtered = SOJOURN__FILTERED__INIT;
    sj_frame_view view;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    const sj_slice block = frame_maker_block(&lab->maker, 500, 0);
    sj_block_header header;
    assert_int_equal(sj_frame_read(block, &view), SJ_OK);
    assert_int_equal(sj_block_read_header(view.payload, &header), SJ_OK);
    lab_file_put(lab, block);
    filtered.session_id.data = header.session.bytes;
    filtered.session_id.len = sizeof(header.session.bytes);
    filtered.reason = (char *)(uintptr_t) "depth";
    filtered.n_function = filtered.n_calls = filtered.n_ticks = 1;
    filtered.function = (uint32_t[]){0};
    filtered.calls = filtered.ticks = (uint64_t[]){1};
    const sj_slice packed = {.data = bytes, .size = sojourn__filtered__pack(&filtered, bytes)};
    assert_true(packed.size <= sizeof(bytes));
    assert_int_equal(
        lab_file_apply(lab, frame_maker_wrap(&lab->maker, SJ_FRAME_FILTERED, packed, (sj_slice){0}),
                       &duplicate),
        SJ_ECORRUPT);
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT count(*), (SELECT count(*) FROM filtered_frames)"
                    " FROM blocks",
                    "1|0|\n");
}

static void blocks_that_overlap_are_not_counted_twice(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    frame_maker other;
    frame_maker_init(&other, 1);
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 1000, 0));
    /* the same events, cut shorter, lie within the stored block; cut longer, they overlap it */
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&other, 600, 0), &duplicate), SJ_OK);
    assert_true(duplicate);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&other, 600, 0), &duplicate), SJ_EEXIST);
    assert_false(duplicate);
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT stored_events FROM sessions", "1000|\n");
    frame_maker_deinit(&other);
}

static void a_full_store_refuses_blocks_but_recognizes_duplicates(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 1000, 0));
    lab_file_commit(lab);
    sj_store_close(lab->store);
    lab_file_open(lab, 1, 0);
    lab_file_begin(lab);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&lab->maker, 1000, 0), &duplicate),
                     SJ_EFULL);
    frame_maker again;
    frame_maker_init(&again, 1);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&again, 1000, 0), &duplicate), SJ_OK);
    assert_true(duplicate);
    frame_maker_deinit(&again);
    sj_store_rollback(lab->store);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_EFULL);
}

/* Writes fail at a file length that grows in steps of 50 KiB. A batch is stored completely or not
 * at all. The store continues when there is space again. */
static void a_write_that_fails_leaves_whole_batches(void **state)
{
    lab_file *lab = *state;
    struct rlimit old;
    int failures = 0;
    lab_file_put_metadata(lab);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    uint64_t batches = 0;
    for (rlim_t limit = 100 << 10; limit < 3000 << 10; limit += 50 << 10) {
        frame_maker before = lab->maker; /* shares the buffers; a failure restores the positions */
        const struct rlimit tight = {.rlim_cur = limit, .rlim_max = old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        sj_status status = sj_store_begin(lab->store, &lab->error);
        if (status == SJ_OK) {
            bool duplicate = false;
            status = lab_file_apply(lab, frame_maker_block(&lab->maker, 8000, 0), &duplicate);
            if (status == SJ_OK) {
                status = sj_store_commit(lab->store, &lab->error);
            } else {
                sj_store_rollback(lab->store);
            }
        }
        setrlimit(RLIMIT_FSIZE, &old);
        if (status == SJ_OK) {
            batches++;
        } else {
            failures++;
            before.block = lab->maker.block;
            before.block_capacity = lab->maker.block_capacity;
            lab->maker = before;
        }
    }
    assert_true(failures > 0);
    assert_true(batches > 0);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 8000, 0));
    lab_file_commit(lab);
    batches++;
    char expected[64];
    snprintf(expected, sizeof(expected), "%llu|%llu|1|\n", (unsigned long long)batches,
             (unsigned long long)batches * 8000);
    lab_file_expect(
        lab,
        "SELECT count(*), sum(event_count), (SELECT stored_blocks FROM sessions) = count(*)"
        " FROM blocks",
        expected);
    lab_file_expect(lab, "PRAGMA integrity_check", "ok|\n");
    lab_file_expect(lab,
                    "SELECT (SELECT sum(calls) FROM call_paths) = (SELECT sum(event_count -"
                    " call_count) FROM blocks)",
                    "1|\n");
}

/* SQLite creates the log beside the file, not beside the link to it. */
static void the_target_of_a_link_has_to_be_in_place(void **state)
{
    lab_file *lab = *state;
    lab_file real = {.error = {0}};
    char away[96];
    char path[96];
    sj_store_close(lab->store);
    lab->store = NULL;
    lab_file_remove(lab->path);
    snprintf(real.path, sizeof(real.path), "%.50s.real", lab->path);
    snprintf(away, sizeof(away), "%s.away", real.path);
    lab_file_remove(real.path);
    assert_int_equal(symlink(real.path, lab->path), 0);
    lab_file_open(lab, 0, 0);
    lab_file_put_metadata(lab);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    for (int i = 0; i < 2; ++i) { /* the database, and its log */
        snprintf(path, sizeof(path), "%s%s", real.path, i == 0 ? "" : "-wal");
        assert_int_equal(rename(path, away), 0);
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_EIO);
        assert_int_equal(rename(away, path), 0);
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
    }
    assert_int_equal(unlink(lab->path), 0);
    assert_int_equal(symlink("/dev/null", lab->path), 0);
    assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_EIO);
    sj_store_close(lab->store);
    lab->store = NULL;
    lab_file_remove(real.path);
    lab_file_remove(lab->path);
}

/* The file is removed or replaced by another: commits to it would be lost at the end of the
 * process. */
static void a_moved_database_accepts_no_commit(void **state)
{
    lab_file *lab = *state;
    char away[96];
    char path[80];
    lab_file_put_metadata(lab);
    for (int i = 0; i < 2; ++i) { /* the database, and its log */
        snprintf(path, sizeof(path), "%s%s", lab->path, i == 0 ? "" : "-wal");
        snprintf(away, sizeof(away), "%s.away", path);
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_mark(&lab->maker, (uint64_t)i + 1));
        assert_int_equal(rename(path, away), 0);
        assert_int_equal(sj_store_commit(lab->store, &lab->error), SJ_EIO);
        assert_non_null(strstr(lab->error.text, "removed or replaced"));
        FILE *other = fopen(path, "w");
        assert_non_null(other);
        fclose(other);
        assert_int_equal(sj_store_begin(lab->store, &lab->error), SJ_EIO);
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_EIO);
        assert_int_equal(rename(away, path), 0); /* restored as it was */
        assert_int_equal(sj_store_check(lab->store, &lab->error), SJ_OK);
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_mark(&lab->maker, (uint64_t)i + 10));
        lab_file_commit(lab);
    }
    lab_file_expect(lab, "SELECT count(*) FROM marks", "4|\n");
}

static void foreign_and_newer_databases_are_refused(void **state)
{
    lab_file *lab = *state;
    sqlite3 *database = NULL;
    sj_store_close(lab->store);
    lab->store = NULL;
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA user_version=99", NULL, NULL, NULL);
    sqlite3_close(database);
    const sj_store_options options = {.path = lab->path};
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_EVERSION);
    assert_non_null(strstr(lab->error.text, "newer"));
    assert_int_equal(sqlite3_open(lab->path, &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA user_version=1; PRAGMA application_id=7", NULL, NULL, NULL);
    sqlite3_close(database);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_ECORRUPT);
    lab_file_remove(lab->path);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_ENOTFOUND);
}

/* A recording is packed when it has ended and no process has it open. It can be stored into as
 * before. */
static void a_small_recording_is_a_small_file(void **state)
{
    lab_file *lab = *state;
    struct stat file;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 100, 0));
    lab_file_commit(lab);
    char *before = lab_file_ask(lab, lab_file_sums_sql);
    sj_database_pack(lab->path); /* it is open: nothing happens */
    lab_file_expect(lab, "PRAGMA page_size", "16384|\n");
    sj_store_close(lab->store);
    sj_database_pack(lab->path);
    assert_int_equal(stat(lab->path, &file), 0);
    assert_in_range(file.st_size, 1, 136 * 1024);
    lab_file_expect(lab, "PRAGMA page_size", "512|\n");
    lab_file_open(lab, 0, 0);
    lab_file_expect(lab, "PRAGMA page_size", "16384|\n");
    lab_file_expect(lab, "PRAGMA auto_vacuum", "2|\n");
    lab_file_expect(lab, "PRAGMA journal_mode", "wal|\n");
    char *after = lab_file_ask(lab, lab_file_sums_sql);
    assert_string_equal(after, before);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 100, 0));
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT stored_blocks FROM sessions", "2|\n");
    sqlite3_free(before);
    sqlite3_free(after);
}

static void a_new_database_has_the_promised_settings(void **state)
{
    lab_file *lab = *state;
    lab_file_expect(lab, "PRAGMA page_size", "16384|\n");
    lab_file_expect(lab, "PRAGMA auto_vacuum", "2|\n");
    lab_file_expect(lab, "PRAGMA journal_mode", "wal|\n");
    lab_file_expect(lab, "PRAGMA application_id", "1397378114|\n");
}

/* Computes the digest of a module's functions from the rows. The stored digest must equal it. */
static void check_digest(const lab_file *lab)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    uint64_t digest[2] = SJ_FUNCTIONS_DIGEST_BEGIN;
    assert_int_equal(sj_database_open(lab->path, SJ_DATABASE_READ, &database, NULL), SJ_OK);
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT offset, size_bytes, symbol, functions_digest FROM"
                                        " functions JOIN modules USING (module_id) ORDER BY 1",
                                        -1, &row, NULL),
                     SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        sj_store_digest_function(digest, (uint64_t)sqlite3_column_int64(row, 0),
                                 (uint32_t)sqlite3_column_int64(row, 1),
                                 (const char *)sqlite3_column_text(row, 2));
        if (sqlite3_column_int64(row, 0) == 0x1000 + 64 * (FRAME_MAKER_FUNCTIONS - 1)) {
            assert_memory_equal(sqlite3_column_blob(row, 3), digest, sizeof(digest));
        }
    }
    sqlite3_finalize(row);
    sqlite3_close(database);
}

/* Readers can then show and compare all names, and JSON can hold them. */
static void bytes_of_names_that_are_no_utf8_are_escaped(void **state)
{
    lab_file *lab = *state;
    lab->maker.name_end = "\xff\xc3\xa9";
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_mark(&lab->maker, 1));
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT (SELECT name FROM devices), (SELECT tags ->> 'lab' FROM devices),"
                    " (SELECT name FROM sessions), (SELECT name FROM threads), (SELECT name FROM"
                    " marks), (SELECT name FROM functions WHERE offset = 0x1000), (SELECT symbol"
                    " FROM functions WHERE offset = 0x1040)",
                    "bench-1\\xff\xc3\xa9|\"berlin\"\\xff\xc3\xa9|synthetic\\xff\xc3\xa9|"
                    "main\\xff\xc3\xa9|phase\\xff\xc3\xa9|function_0\\xff\xc3\xa9|"
                    "_Z7foo_001i\\xff\xc3\xa9|\n");
    check_digest(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_of_names_that_are_no_utf8_are_escaped,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(metadata_is_stored_and_names_are_demangled, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(sums_of_a_session_agree_with_each_other, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(
            open_calls_of_streams_without_an_end_count_up_to_the_last_event, lab_file_set_up,
            lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_frame_that_comes_twice_is_stored_once, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(order_and_restarts_do_not_change_the_sums, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(
            restarts_do_not_change_what_calls_without_a_clock_are_estimated_by, lab_file_set_up,
            lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_rolled_back_batch_leaves_nothing, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(inconsistent_frames_are_refused_without_ending_the_batch,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_repeat_with_its_loss_elsewhere_is_not_a_duplicate,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_report_of_freed_memory_counts_once_under_two_numbers,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_finding_is_one_whatever_the_depth_of_a_recursion,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(reports_are_stored_once_and_only_json_objects,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_frame_that_runs_into_a_constraint_is_refused_alone,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(blocks_that_overlap_are_not_counted_twice, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_full_store_refuses_blocks_but_recognizes_duplicates,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_whole_batches, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(the_target_of_a_link_has_to_be_in_place, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_moved_database_accepts_no_commit, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(foreign_and_newer_databases_are_refused, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_small_recording_is_a_small_file, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_new_database_has_the_promised_settings, lab_file_set_up,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
