#include "proto/callgraph/callgraph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void add(sj_slow_calls *slow, uint32_t function, uint64_t index, uint64_t ticks)
{
    const sj_slow_call call = {.call_index = index, .duration_ticks = ticks};
    assert_int_equal(sj_slow_calls_add(slow, function, &call), SJ_OK);
}

static void a_function_keeps_its_longest_calls_in_order(void **state)
{
    (void)state;
    static const uint64_t ticks[] = {5, 90, 7, 7, 100, 3, 90, 8, 7};
    static const uint64_t kept[] = {4, 1, 6, 7, 2}; /* of equal durations, the first calls stay */
    sj_slow_calls slow = {.floor_ticks = 4};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); ++i) {
        add(&slow, 77, i, ticks[i]);
        add(&slow, 12, i, 2); /* below the floor */
    }
    assert_int_equal(slow.list_count, 1);
    assert_int_equal(slow.call_count, SJ_SLOW_CALLS_A_FUNCTION);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); ++i) {
        assert_int_equal(slow.lists[0].calls[i].call_index, kept[i]);
    }
    assert_int_equal(sj_slow_calls_threshold(&slow, 77), 7);
    assert_int_equal(sj_slow_calls_threshold(&slow, 12), 4);
    sj_slow_calls_deinit(&slow);
}

/* If more functions have calls than a session may list, the longest calls stay. Each function loses
 * its shortest calls first. */
static void a_session_keeps_a_bounded_number(void **state)
{
    (void)state;
    enum { FUNCTIONS = 6000, CALLS = 6 };
    sj_slow_calls slow = {0};
    for (uint32_t call = 0; call < CALLS; ++call) {
        for (uint32_t function = 1; function <= FUNCTIONS; ++function) {
            add(&slow, function, call, (uint64_t)function * 10 + call);
            assert_true(slow.call_count <= SJ_SLOW_CALLS_A_SESSION);
        }
    }
    uint32_t counted = 0;
    for (uint32_t i = 0; i < slow.list_count; ++i) {
        const sj_slow_list *list = &slow.lists[i];
        counted += list->count;
        for (uint32_t k = 0; k < list->count; ++k) {
            assert_true(list->calls[k].duration_ticks > slow.floor_ticks);
            assert_int_equal(list->calls[k].call_index, CALLS - 1 - k);
        }
    }
    assert_int_equal(counted, slow.call_count);
    assert_true(counted >= SJ_SLOW_CALLS_A_SESSION / 4);
    /* All calls longer than the floor are listed. */
    for (uint32_t i = 0; i < slow.list_count; ++i) {
        const sj_slow_list *list = &slow.lists[i];
        if (list->count < SJ_SLOW_CALLS_A_FUNCTION) {
            const uint64_t next = (uint64_t)list->function * 10 + CALLS - 1 - list->count;
            assert_true(next <= slow.floor_ticks);
        }
    }
    sj_slow_calls_deinit(&slow);
}

static void changed_lists_are_reported_once(void **state)
{
    (void)state;
    sj_slow_calls slow = {0};
    add(&slow, 1, 1, 10);
    add(&slow, 1, 2, 20);
    add(&slow, 2, 3, 30);
    assert_int_equal(slow.dirty_count, 2);
    sj_slow_calls_clean(&slow);
    assert_int_equal(slow.dirty_count, 0);
    add(&slow, 2, 4, 40);
    assert_int_equal(slow.dirty_count, 1);
    assert_int_equal(slow.lists[slow.dirty[0]].function, 2);
    sj_slow_calls_deinit(&slow);
}

/* Lists that lose calls to longer calls of other functions are dirty, too, because their stored
 * rows must be removed. */
static void lists_that_lose_calls_are_reported(void **state)
{
    (void)state;
    enum { FUNCTIONS = SJ_SLOW_CALLS_A_SESSION };
    sj_slow_calls slow = {0};
    for (uint32_t function = 1; function <= FUNCTIONS; ++function) {
        add(&slow, function, function, function);
    }
    sj_slow_calls_clean(&slow);
    add(&slow, FUNCTIONS + 1, 1, FUNCTIONS + 1);
    for (uint32_t i = 0; i < slow.list_count; ++i) {
        const sj_slow_list *list = &slow.lists[i];
        assert_true(list->dirty == (list->count == 0 || list->function > FUNCTIONS));
    }
    assert_int_equal(slow.dirty_count, slow.list_count - slow.call_count + 1);
    assert_int_equal(slow.call_count, FUNCTIONS / 2);
    sj_slow_calls_deinit(&slow);
}

static void calls_of_moved_nodes_are_reported(void **state)
{
    (void)state;
    static const uint32_t moved[] = {0, 3, 1};
    sj_slow_calls slow = {0};
    for (uint32_t node = 1; node <= 3; node++) {
        const sj_slow_call call = {.call_index = node, .duration_ticks = 10, .node = node};
        assert_int_equal(sj_slow_calls_add(&slow, node, &call), SJ_OK);
    }
    sj_slow_calls_clean(&slow);
    sj_slow_calls_move(&slow, moved, sizeof(moved) / sizeof(moved[0]));
    assert_int_equal(slow.dirty_count, 3);
    assert_int_equal(slow.lists[0].calls[0].node, 3);
    assert_int_equal(slow.lists[1].calls[0].node, 1);
    assert_int_equal(slow.lists[2].calls[0].node, 0); /* the node is gone */
    sj_slow_calls_deinit(&slow);
}

/* A call with a callee, then two other calls. Calls were lost before, between and inside them. */
static void calls_after_a_gap_are_numbered_after_the_lost_calls(void **state)
{
    (void)state;
    static const uint32_t functions[] = {9, 7};
    static const uint16_t symbols[] = {1, 2, 0, 0, 1, 0, 2, 0};
    static const uint64_t ticks[] = {100, 110, 120, 200, 300, 500, 600, 900};
    static const sj_gap gaps[] = {
        {.before_event = 0, .reason = SJ_GAP_RING_FULL, .calls = 1, .events = 2},
        {.before_event = 4, .reason = SJ_GAP_RING_FULL, .calls = 10, .events = 20},
        {.before_event = 6, .reason = SJ_GAP_RING_FULL, .calls = 100, .events = 200},
        {.before_event = 7, .reason = SJ_GAP_RING_FULL, .calls = 1000, .events = 2000}};
    static const size_t entries[] = {0, 1, 4, 6};
    static const uint64_t numbers[] = {21, 22, 33, 134}; /* numbers of their calls */
    const sj_block block = {.header = {.version = 1,
                                       .kind = SJ_BLOCK_CALLS,
                                       .stream = 1,
                                       .event_count = 8,
                                       .call_count = 4,
                                       .first_event = 40,
                                       .first_call = 20,
                                       .first_ticks = 100,
                                       .last_ticks = 900,
                                       .lost_calls = 1111,
                                       .lost_events = 2222,
                                       .clock_step = 1},
                            .functions = functions,
                            .function_count = 2,
                            .symbols16 = symbols,
                            .ticks = ticks,
                            .gaps = gaps,
                            .gap_count = 4};
    sj_callgraph *graph;
    sj_block_summary summary;
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_callgraph_apply(graph, &block, NULL, NULL, &summary), SJ_OK);
    assert_int_equal(summary.outline->call_count, 4);
    for (size_t i = 0; i < summary.outline->call_count; i++) {
        const sj_outline_call *call = &summary.outline->calls[i];
        size_t number = 0;
        while (number < 3 && ticks[entries[number]] != call->start_ticks) {
            number++;
        }
        assert_int_equal(call->call_index, numbers[number]);
    }
    const sj_slow_calls *slow = sj_callgraph_slow_calls(graph);
    assert_int_equal(slow->call_count, 4);
    assert_int_equal(slow->lists[0].calls[0].call_index, numbers[3]); /* of 7: 300 ticks */
    assert_int_equal(slow->lists[0].calls[1].call_index, numbers[1]); /* 10 */
    assert_int_equal(slow->lists[1].calls[0].call_index, numbers[2]); /* of 9: 200 */
    assert_int_equal(slow->lists[1].calls[1].call_index, numbers[0]); /* 100 */
    sj_callgraph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_keeps_its_longest_calls_in_order),
        cmocka_unit_test(a_session_keeps_a_bounded_number),
        cmocka_unit_test(changed_lists_are_reported_once),
        cmocka_unit_test(lists_that_lose_calls_are_reported),
        cmocka_unit_test(calls_of_moved_nodes_are_reported),
        cmocka_unit_test(calls_after_a_gap_are_numbered_after_the_lost_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
