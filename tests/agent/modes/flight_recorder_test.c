/* Tests what the flight recorder keeps, and what a dump ships. */
#include "agent/modes/flight_recorder.h"

#include "tests/support/check.h"
#include "tests/support/test_session.h"

enum { BEFORE = 1000, AFTER = 100, CALLS = 3 };

static test_session *session;
static sj_flight_recorder *flight;

static void begin(uint64_t max_bytes, const char *directory)
{
    const sj_flight_recorder_options options = {.writer = session->writer,
                                                .before_ticks = BEFORE,
                                                .after_ticks = AFTER,
                                                .max_bytes = max_bytes,
                                                .directory = directory};
    assert_int_equal(sj_flight_recorder_new(&options, &flight), SJ_OK);
}

static int set_up(void **state)
{
    (void)state;
    session = test_session_open(0);
    sj_frame_writer_keep_threads(session->writer, true);
    flight = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_flight_recorder_free(flight);
    test_session_close(session);
    return 0;
}

static size_t block_bytes;

static sj_status keep(void *context, const sj_block_header *header, sj_slice bytes)
{
    block_bytes = bytes.size;
    return sj_flight_recorder_block(context, header, bytes);
}

/* Dumps around `ticks` and returns how many blocks the child session has. */
static size_t dump(uint64_t ticks, sj_session_id *child)
{
    assert_int_equal(sj_flight_recorder_dump(flight, ticks, "test", child), SJ_OK);
    assert_int_equal(sj_flight_recorder_ship(flight, ticks + AFTER), SJ_OK);
    return test_session_read(session, SJ_FRAME_BLOCK);
}

static void a_dump_ships_the_time_before_the_trigger(void **state)
{
    sj_session_id child;
    (void)state;
    begin(UINT64_MAX, NULL);
    test_blocks(10000, CALLS, flight, keep);
    test_blocks(20000, CALLS, flight, keep);
    assert_int_equal(dump(20500, &child), 1); /* the earlier block is too old */
    assert_int_equal(test_session_read(session, SJ_FRAME_SESSION_END), 1);
    Sojourn__SessionEnd *end =
        test_session_message(session, SJ_FRAME_SESSION_END, 0, &sojourn__session_end__descriptor);
    assert_int_equal(end->calls, CALLS);
    assert_memory_equal(end->session_id.data, child.bytes, SJ_SESSION_ID_BYTES);
    protobuf_c_message_free_unpacked(&end->base, NULL);
}

static void the_oldest_blocks_are_removed_when_memory_is_full(void **state)
{
    sj_session_id child;
    (void)state;
    begin(UINT64_MAX, NULL);
    test_blocks(10000, CALLS, flight, keep);
    sj_flight_recorder_free(flight);
    begin(2 * block_bytes + 1, NULL);
    for (uint64_t i = 0; i < 5; i++) {
        test_blocks(10000 + 100 * i, CALLS, flight, keep);
    }
    assert_int_equal(dump(10500, &child), 2);
}

static void a_dump_waits_for_its_time_and_excludes_another_dump(void **state)
{
    sj_session_id child;
    (void)state;
    begin(UINT64_MAX, NULL);
    assert_false(sj_flight_recorder_is_due(flight, UINT64_MAX, true));
    assert_int_equal(sj_flight_recorder_dump(flight, 5000, "first", &child), SJ_OK);
    assert_int_equal(sj_flight_recorder_dump(flight, 5001, "second", &child), SJ_EAGAIN);
    assert_false(sj_flight_recorder_is_due(flight, 5000 + AFTER - 1, false));
    assert_true(sj_flight_recorder_is_due(flight, 5000 + AFTER - 1, true));
    assert_true(sj_flight_recorder_is_due(flight, 5000 + AFTER, false));
}

static sj_status copy_file(void *context, const sj_block_header *header, sj_slice bytes)
{
    FILE *file = fopen(context, "w");
    (void)header;
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    return SJ_OK;
}

static void blocks_of_a_killed_recorder_are_loaded_and_cut_ones_are_not(void **state)
{
    char path[96];
    sj_session_id child;
    (void)state;
    snprintf(path, sizeof(path), "%s/flight-4", session->directory);
    test_blocks(10000, CALLS, path, copy_file);
    snprintf(path, sizeof(path), "%s/flight-5", session->directory);
    test_blocks(10100, CALLS, path, copy_file);
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, -6, SEEK_END), 0);
    assert_int_equal(fputc('x', file), 'x');
    fclose(file);
    begin(UINT64_MAX, session->directory);
    assert_int_equal(sj_flight_recorder_load(flight, session->directory), SJ_OK);
    assert_int_equal(dump(10200, &child), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dump_ships_the_time_before_the_trigger, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_blocks_are_removed_when_memory_is_full, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_dump_waits_for_its_time_and_excludes_another_dump, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(blocks_of_a_killed_recorder_are_loaded_and_cut_ones_are_not,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
