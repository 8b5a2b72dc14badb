/* Tests that blocks become sums per call path. The next recorder sends the sums of a killed
 * recorder. */
#include "agent/modes/profile.h"

#include "agent/host/clock.h"
#include "tests/support/call_trace.h"
#include "tests/support/check.h"
#include "tests/support/test_session.h"

static test_session *session;
static sj_journal journal;

static int set_up(void **state)
{
    const sj_session_id id = {.bytes = {1, 2, 3}};
    sj_error error = {0};
    (void)state;
    session = test_session_open(0);
    assert_int_equal(sj_journal_create(session->directory, &id, &journal, &error), SJ_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_journal_close(&journal);
    test_session_close(session);
    return 0;
}

static sj_profiler_options options(void)
{
    return (sj_profiler_options){
        .writer = session->writer, .journal = &journal, .runtime_directory = session->directory};
}

static sj_profiler *begin(void)
{
    const sj_profiler_options given = options();
    sj_profiler *profiler;
    assert_int_equal(sj_profiler_new(&given, &profiler), SJ_OK);
    return profiler;
}

static sj_status add(void *context, const sj_block_header *header, sj_slice bytes)
{
    (void)header;
    return sj_profiler_block(context, bytes);
}

static void assert_profile(size_t index, uint64_t calls, uint64_t first_ticks)
{
    Sojourn__Profile *profile =
        test_session_message(session, SJ_FRAME_PROFILE, index, &sojourn__profile__descriptor);
    assert_int_equal(profile->calls, calls);
    assert_int_equal(profile->events, 2 * calls);
    assert_int_equal(profile->first_ticks, first_ticks);
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

static void blocks_are_summed_until_they_are_sent(void **state)
{
    sj_profiler *profiler = begin();
    (void)state;
    assert_int_equal(sj_profiler_send(profiler), SJ_OK); /* nothing yet */
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 0);
    test_blocks(1000, 3, profiler, add);
    test_blocks(2000, 4, profiler, add);
    assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    test_blocks(3000, 5, profiler, add);
    assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 2);
    assert_int_equal(test_session_read(session, SJ_FRAME_BLOCK), 0);
    assert_profile(0, 7, 1000);
    assert_profile(1, 5, 3000);
    sj_profiler_free(profiler);
}

/* The checkpoint holds three calls. Two later calls are lost with the recorder. */
static void a_checkpoint_survives_its_recorder_and_the_remainder_is_a_gap(void **state)
{
    const sj_profiler_options given = options();
    sj_profiler *profiler = begin();
    (void)state;
    test_blocks(1000, 3, profiler, add);
    sj_profiler_checkpoint(profiler);
    test_blocks(2000, 2, profiler, add);
    sj_profiler_free(profiler);
    assert_int_equal(sj_profiler_recover(&given), SJ_OK);
    assert_int_equal(test_session_read(session, SJ_FRAME_GAP), 1);
    Sojourn__Gap *gap = test_session_message(session, SJ_FRAME_GAP, 0, &sojourn__gap__descriptor);
    assert_int_equal(gap->calls, 2);
    protobuf_c_message_free_unpacked(&gap->base, NULL);
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 1);
    assert_profile(0, 3, 1000);
}

/* Adds all blocks of a thread but the last to the profiler. Returns the number of calls that are
 * open after them. */
static uint32_t add_all_but_last(sj_profiler *profiler)
{
    const trace_shape shape = {.seed = 7,
                               .calls = 400,
                               .functions = 5,
                               .max_depth = 12,
                               .base_depth = 4,
                               .tick_choices = 9};
    call_trace trace = trace_generate(&shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 64, &store, &counters);
    for (size_t i = 0; i + 1 < store.count; i++) {
        const sj_slice bytes = {.data = store.blocks[i].data, .size = store.blocks[i].size};
        assert_int_equal(sj_profiler_block(profiler, bytes), SJ_OK);
    }
    const uint32_t open = store.blocks[store.count - 1].header.open_depth;
    block_store_free(&store);
    trace_free(&trace);
    return open;
}

/* Sums that were sent are not sent again. Calls that are open after them are sent again. */
static void calls_that_are_open_at_a_checkpoint_come_in_a_block(void **state)
{
    (void)state;
    for (int is_sent = 0; is_sent < 2; is_sent++) {
        const sj_profiler_options given = options();
        sj_profiler *profiler = begin();
        sj_block_header header;
        const uint32_t open = add_all_but_last(profiler);
        assert_true(open >= 4);
        sj_profiler_checkpoint(profiler);
        assert_int_equal(is_sent ? sj_profiler_send(profiler) : SJ_OK, SJ_OK);
        sj_profiler_free(profiler);
        assert_int_equal(sj_profiler_recover(&given), SJ_OK);
        assert_int_equal(test_session_read(session, SJ_FRAME_GAP), 0);
        assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 1 + is_sent);
        assert_int_equal(test_session_read(session, SJ_FRAME_BLOCK), 1 + is_sent);
        for (size_t i = 0; i < session->count; i++) {
            if (session->frames[i].type == SJ_FRAME_BLOCK) {
                assert_int_equal(sj_block_read_header(session->frames[i].payload, &header), SJ_OK);
            }
        }
        assert_int_equal(header.open_depth, open);
        assert_int_equal(header.event_count, 0);
    }
}

/* Returns the blocks of a thread with about as many call paths as calls. */
static block_store record_many_paths(uint64_t seed)
{
    const trace_shape shape = {
        .seed = seed, .calls = 30000, .functions = 1000, .max_depth = 60, .tick_choices = 9};
    call_trace trace = trace_generate(&shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 0, &store, &counters);
    trace_free(&trace);
    return store;
}

static void add_all(sj_profiler *profiler, const block_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        const sj_slice bytes = {.data = store->blocks[i].data, .size = store->blocks[i].size};
        assert_int_equal(sj_profiler_block(profiler, bytes), SJ_OK);
    }
}

/* The collector writes all that a frame changes, so frames of few paths would cost it much. */
static void sums_of_many_paths_are_sent_in_few_frames(void **state)
{
    sj_profiler *profiler = begin();
    uint64_t adds = 0;
    (void)state;
    while (!sj_profiler_is_large(profiler) && adds < 100) {
        block_store store = record_many_paths(++adds);
        add_all(profiler, &store);
        block_store_free(&store);
    }
    assert_in_range(adds, 4, 8); /* 131,072 paths */
    assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    assert_false(sj_profiler_is_large(profiler));
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 1);
    sj_profiler_free(profiler);
}

/* Each call of a path may add to the bytes of its histogram. */
static void sums_of_many_calls_are_sent_before_they_exceed_a_frame(void **state)
{
    sj_profiler *profiler = begin();
    block_store store = record_many_paths(1);
    uint64_t adds = 0;
    (void)state;
    while (!sj_profiler_is_large(profiler) && adds < 200) {
        add_all(profiler, &store);
        adds++;
    }
    assert_in_range(adds, 50, 110); /* of 60,000 events: 12 MiB at two bytes each, less the paths */
    assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    block_store_free(&store);
    sj_profiler_free(profiler);
}

static void a_checkpoint_waits_longer_than_the_previous_one_took(void **state)
{
    const sj_profiler_options given = options();
    sj_profiler *profiler = begin();
    (void)state;
    test_blocks(1000, 3, profiler, add);
    sj_profiler_checkpoint_if_due(profiler, 1);
    test_blocks(2000, 2, profiler, add);
    /* The first checkpoint ended now and began at 1, so it took longer than ten seconds / 31. */
    sj_profiler_checkpoint_if_due(profiler, sj_clock_ns(CLOCK_MONOTONIC) + UINT64_C(10000000000));
    sj_profiler_free(profiler);
    assert_int_equal(sj_profiler_recover(&given), SJ_OK);
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 1);
    assert_profile(0, 3, 1000);
    profiler = begin();
    test_blocks(3000, 3, profiler, add);
    sj_profiler_checkpoint_if_due(profiler, 1);
    test_blocks(4000, 2, profiler, add);
    sj_profiler_checkpoint_if_due(profiler, UINT64_MAX); /* due */
    sj_profiler_free(profiler);
    assert_int_equal(sj_profiler_recover(&given), SJ_OK);
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 2);
    assert_profile(1, 5, 3000);
}

static void damaged_blocks_are_refused(void **state)
{
    static const uint8_t noise[200] = {1};
    sj_profiler *profiler = begin();
    (void)state;
    assert_int_not_equal(
        sj_profiler_block(profiler, (sj_slice){.data = noise, .size = sizeof(noise)}), SJ_OK);
    sj_profiler_free(profiler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_are_summed_until_they_are_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_checkpoint_survives_its_recorder_and_the_remainder_is_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_that_are_open_at_a_checkpoint_come_in_a_block, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sums_of_many_paths_are_sent_in_few_frames, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sums_of_many_calls_are_sent_before_they_exceed_a_frame,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_checkpoint_waits_longer_than_the_previous_one_took,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_blocks_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
