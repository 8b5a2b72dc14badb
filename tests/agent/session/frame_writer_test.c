/* Tests what the frame writer numbers, counts, refuses, and keeps while the disk is full. */
#include "agent/session/frame_writer.h"

#include "tests/support/check.h"
#include "tests/support/test_session.h"

static test_session *session;
static bool is_full;

sj_status __real_sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error);
sj_status __wrap_sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error);
sj_status __wrap_sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error)
{
    return is_full ? SJ_EFULL : __real_sj_spool_append(spool, frame, error);
}

static int set_up(void **state)
{
    (void)state;
    is_full = false;
    session = test_session_open(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_session_close(session);
    return 0;
}

static sj_status write_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    return sj_frame_writer_block(context, header, bytes);
}

static void send_mark(const char *name)
{
    assert_int_equal(sj_frame_writer_mark(session->writer, name, false, 5, 0, "cli"), SJ_OK);
}

static void assert_mark(size_t index, const char *name)
{
    Sojourn__Mark *mark =
        test_session_message(session, SJ_FRAME_MARK, index, &sojourn__mark__descriptor);
    assert_string_equal(mark->name, name);
    assert_int_equal(mark->mark, index + 1);
    protobuf_c_message_free_unpacked(&mark->base, NULL);
}

static void sent_blocks_are_counted(void **state)
{
    sj_frame_writer_counters counters;
    (void)state;
    test_blocks(1000, 3, session->writer, write_block);
    sj_frame_writer_get_counters(session->writer, &counters);
    assert_int_equal(counters.blocks, 1);
    assert_int_equal(counters.block_calls, 3);
    assert_int_equal(counters.block_events, 6);
    assert_int_equal(counters.refused_blocks, 0);
    assert_int_equal(test_session_read(session, SJ_FRAME_BLOCK), 1);
}

static void marks_are_numbered(void **state)
{
    (void)state;
    send_mark("one");
    send_mark("two");
    assert_int_equal(test_session_read(session, SJ_FRAME_MARK), 2);
    assert_mark(0, "one");
    assert_mark(1, "two");
}

static void control_frames_wait_for_disk_space_and_keep_their_order(void **state)
{
    sj_frame_writer_counters counters;
    (void)state;
    send_mark("one");
    is_full = true;
    send_mark("two");
    send_mark("three");
    sj_frame_writer_get_counters(session->writer, &counters);
    assert_int_equal(counters.waiting_frames, 2);
    assert_int_equal(sj_frame_writer_retry(session->writer), 2);
    is_full = false;
    send_mark("four"); /* comes after the waiting marks */
    assert_int_equal(sj_frame_writer_retry(session->writer), 0);
    assert_int_equal(test_session_read(session, SJ_FRAME_MARK), 4);
    assert_mark(1, "two");
    assert_mark(2, "three");
    assert_mark(3, "four");
}

static void a_block_that_a_full_spool_refuses_is_counted(void **state)
{
    sj_frame_writer_counters counters;
    (void)state;
    is_full = true;
    test_blocks(1000, 3, session->writer, write_block);
    sj_frame_writer_get_counters(session->writer, &counters);
    assert_int_equal(counters.refused_blocks, 1);
    assert_int_equal(counters.refused_calls, 3);
    assert_int_equal(counters.block_calls, 0);
    assert_int_equal(counters.waiting_frames, 0);
}

static void gaps_are_sums_of_what_is_lost(void **state)
{
    sj_frame_writer_counters counters;
    (void)state;
    assert_int_equal(sj_frame_writer_gap(session->writer, SJ_GAP_RING_FULL, 1, 0, 10, 30, 100, 200),
                     SJ_OK);
    assert_int_equal(sj_frame_writer_gap(session->writer, SJ_GAP_TORN, 1, 0, 1, 2, 300, 400),
                     SJ_OK);
    sj_frame_writer_get_counters(session->writer, &counters);
    assert_int_equal(counters.gap_calls, 11);
    assert_int_equal(counters.gap_events, 32);
    assert_int_equal(test_session_read(session, SJ_FRAME_GAP), 2);
    Sojourn__Gap *gap = test_session_message(session, SJ_FRAME_GAP, 1, &sojourn__gap__descriptor);
    assert_int_equal(gap->gap, 2);
    assert_int_equal(gap->reason, SJ_GAP_TORN);
    protobuf_c_message_free_unpacked(&gap->base, NULL);
}

static void a_recording_ends_at_its_size(void **state)
{
    sj_frame_writer_counters counters;
    (void)state;
    test_session *small = test_session_open(1);
    test_blocks(1000, 3, small->writer, write_block);
    sj_frame_writer_get_counters(small->writer, &counters);
    assert_true(counters.reached_max_bytes);
    assert_int_equal(counters.blocks, 0);
    assert_int_equal(counters.refused_calls, 3);
    test_session_close(small);
}

/* A later recorder continues with the sums and numbers of the journal. */
static void a_later_recorder_continues_from_the_journal(void **state)
{
    const sj_session_id id = {.bytes = {1, 2, 3}};
    sj_journal journal;
    sj_frame_writer *writer;
    sj_frame_writer_counters counters;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_journal_create(session->directory, &id, &journal, &error), SJ_OK);
    const sj_frame_writer_options options = {
        .session = id, .spool = session->spool, .journal = &journal};
    assert_int_equal(sj_frame_writer_new(&options, &writer), SJ_OK);
    assert_int_equal(sj_frame_writer_gap(writer, SJ_GAP_TORN, 1, 0, 10, 30, 100, 200), SJ_OK);
    assert_int_equal(sj_frame_writer_gap(writer, SJ_GAP_TORN, 1, 0, 1, 2, 300, 400), SJ_OK);
    sj_frame_writer_free(writer);
    assert_int_equal(sj_frame_writer_new(&options, &writer), SJ_OK);
    sj_frame_writer_resume(writer);
    sj_frame_writer_get_counters(writer, &counters);
    assert_int_equal(counters.gap_calls, 11);
    assert_int_equal(counters.gap_events, 32);
    sj_frame_writer_free(writer);
    sj_journal_close(&journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sent_blocks_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marks_are_numbered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_frames_wait_for_disk_space_and_keep_their_order,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_that_a_full_spool_refuses_is_counted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(gaps_are_sums_of_what_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_later_recorder_continues_from_the_journal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_recording_ends_at_its_size, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
