/* SQLite reuses the id of a deleted row for the next new one. The store must forget streams and
 * sessions with their rows. Otherwise a device writes into another device's session. */
#include "collector-server/store/store_internal.h"
#include "proto/callgraph/profile.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FUNCTION = 1, EVENTS = 300 };

static const char open_sql[] =
    "SELECT hex(substr(uuid, 1, 1)), number, count(*) FROM open_calls JOIN streams USING"
    " (stream_id) JOIN sessions USING (session_id) GROUP BY 1, 2";

/* A second recorder beside the lab's own. */
static frame_maker other;

static int set_up(void **state)
{
    frame_maker_init(&other, 2);
    return lab_file_set_up(state);
}

static int tear_down(void **state)
{
    frame_maker_deinit(&other);
    return lab_file_tear_down(state);
}

static void put_metadata(lab_file *lab, frame_maker *maker)
{
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_hello(maker));
    lab_file_put(lab, frame_maker_session(maker));
    lab_file_put(lab, frame_maker_module(maker));
    lab_file_put(lab, frame_maker_thread(maker));
    lab_file_commit(lab);
}

/* Returns a profile without call paths. Its open calls are the outermost calls of `count` streams
 * from `first_stream` on. */
static sj_slice make_profile(frame_maker *maker, uint64_t number, uint32_t first_stream,
                             size_t count, uint32_t function)
{
    sj_profile_open_call *calls = calloc(count, sizeof(*calls));
    const sj_block_header sums = {.first_ticks = FRAME_MAKER_STARTED_TICKS,
                                  .last_ticks = FRAME_MAKER_STARTED_TICKS};
    sj_callgraph *graph;
    uint8_t *raw = NULL;
    size_t raw_bytes = 0;
    assert_non_null(calls);
    for (size_t i = 0; i < count; i++) { /* the order is descending, which must not be refused */
        calls[i] = (sj_profile_open_call){.stream = first_stream + (uint32_t)(count - 1 - i),
                                          .function = function,
                                          .start_ticks = FRAME_MAKER_STARTED_TICKS};
    }
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_profile_encode(graph, calls, count, &raw, &raw_bytes), SJ_OK);
    const sj_slice frame =
        frame_maker_profile(maker, number, &sums, (sj_slice){.data = raw, .size = raw_bytes});
    free(raw);
    free(calls);
    sj_callgraph_free(graph);
    return frame;
}

static void streams_of_a_refused_profile_are_forgotten(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    put_metadata(lab, &lab->maker);
    put_metadata(lab, &other);
    lab_file_begin(lab);
    assert_int_equal(
        lab_file_apply(lab, make_profile(&lab->maker, 1, 9, 1, UINT32_MAX), &duplicate),
        SJ_ENOTFOUND);
    assert_int_equal(
        lab_file_apply(lab, make_profile(&lab->maker, 1, 9, SJ_MOST_NEW_STREAMS + 1, FUNCTION),
                       &duplicate),
        SJ_ELIMIT);
    lab_file_put(lab, make_profile(&other, 1, 5, 1, FUNCTION));
    lab_file_put(lab, make_profile(&lab->maker, 1, 9, 1, FUNCTION));
    lab_file_commit(lab);
    lab_file_expect(lab, open_sql, "01|9|1|\n02|5|1|\n");
    lab_file_expect(lab, "SELECT count(*) FROM streams", "4|\n");
}

/* The writer has the session in memory, including sums that it has not written. */
static void a_session_that_another_process_removed_is_forgotten(void **state)
{
    lab_file *lab = *state;
    const sj_store_options options = {.path = lab->path, .aggregates_delay_ms = 3600000};
    bool duplicate = false;
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
    put_metadata(lab, &lab->maker);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    lab_file_run(lab, "DELETE FROM blocks; DELETE FROM streams; DELETE FROM threads;"
                      " DELETE FROM session_modules; DELETE FROM sessions");
    put_metadata(lab, &other);
    lab_file_expect(lab, "SELECT session_id, stream_id FROM streams", "1|1|\n");
    assert_int_equal(sj_store_write_all_aggregates(lab->store, &lab->error), SJ_OK);
    lab_file_expect(lab, "SELECT stored_calls, stored_blocks FROM sessions", "0|0|\n");
    lab_file_begin(lab);
    assert_int_equal(lab_file_apply(lab, frame_maker_block(&lab->maker, EVENTS, 0), &duplicate),
                     SJ_ENOTFOUND);
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM blocks", "0|\n");
    put_metadata(lab, &lab->maker); /* announced again it gets its own ids */
    lab_file_expect(lab,
                    "SELECT hex(substr(uuid, 1, 1)), stream_id FROM sessions JOIN streams USING"
                    " (session_id) ORDER BY 2",
                    "02|1|\n01|2|\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(streams_of_a_refused_profile_are_forgotten, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_another_process_removed_is_forgotten, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
