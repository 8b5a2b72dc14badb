/* The memory of sessions stays within its limit. */
#include "collector-server/store/store_internal.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SESSIONS = 6, EVENTS = 50, PLENTY = 64 << 20 };

/* Begins SESSIONS sessions with a block each. */
static void put_sessions(lab_file *lab)
{
    for (uint32_t i = 0; i < SESSIONS; ++i) {
        frame_maker_deinit(&lab->maker);
        frame_maker_init(&lab->maker, (uint8_t)(1 + i));
        lab_file_put_metadata(lab);
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
        lab_file_commit(lab);
    }
}

static void reopen(lab_file *lab, size_t graph_bytes)
{
    sj_store_close(lab->store);
    lab_file_open(lab, 0, graph_bytes);
}

/* Returns the number of sessions with a graph. */
static size_t count_graphs(const lab_file *lab)
{
    size_t count = 0;
    for (size_t i = 0; i < lab->store->session_count; ++i) {
        count += lab->store->sessions[i]->graph != NULL;
    }
    return count;
}

static void sessions_that_fit_are_kept(void **state)
{
    lab_file *lab = *state;
    reopen(lab, PLENTY);
    put_sessions(lab);
    assert_int_equal(lab->store->session_count, SESSIONS);
    assert_int_equal(count_graphs(lab), SESSIONS);
}

static void only_the_last_session_is_kept_without_memory(void **state)
{
    lab_file *lab = *state;
    reopen(lab, 1);
    put_sessions(lab);
    assert_int_equal(lab->store->session_count, 1);
    lab_file_expect(lab, "SELECT count(*), sum(stored_blocks) FROM sessions", "6|6|\n");
}

/* A limit that sinks drops the graphs first. What is left of their sessions is counted, too. */
static void dropped_graphs_leave_sessions_that_are_dropped_next(void **state)
{
    lab_file *lab = *state;
    reopen(lab, PLENTY);
    put_sessions(lab);
    lab->store->callgraph_memory_bytes = 1;
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    lab_file_commit(lab);
    assert_int_equal(lab->store->session_count, 1);
    lab_file_expect(lab, "SELECT count(*), sum(stored_blocks) FROM sessions", "6|7|\n");
}

/* The last session stays until the next batch. */
static void ended_sessions_are_dropped_and_loaded_again(void **state)
{
    lab_file *lab = *state;
    reopen(lab, PLENTY);
    for (uint32_t i = 0; i < SESSIONS; ++i) {
        frame_maker_deinit(&lab->maker);
        frame_maker_init(&lab->maker, (uint8_t)(1 + i));
        lab_file_put_metadata(lab);
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
        lab_file_put(lab, frame_maker_end(&lab->maker));
        lab_file_commit(lab);
    }
    assert_int_equal(lab->store->session_count, 1);
    frame_maker_deinit(&lab->maker);
    frame_maker_init(&lab->maker, 1);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_mark(&lab->maker, 1));
    lab_file_commit(lab);
    assert_int_equal(lab->store->session_count, 1);
    lab_file_expect(lab,
                    "SELECT count(*), (SELECT count(*) FROM marks), sum(state = 'completed') FROM "
                    "sessions",
                    "6|1|6|\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_that_fit_are_kept, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(only_the_last_session_is_kept_without_memory,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(ended_sessions_are_dropped_and_loaded_again,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(dropped_graphs_leave_sessions_that_are_dropped_next,
                                        lab_file_set_up, lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
