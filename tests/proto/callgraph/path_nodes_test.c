#include "proto/callgraph/path_nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LEVELS = 100000 };

static void test_a_deep_recursion_is_folded_with_exact_edges(void **state)
{
    (void)state;
    sj_path_nodes paths;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    /* 1 calls 2, 2 calls 3 or 1, 3 calls 1: mutual recursion with two cycles. */
    uint32_t node = 0;
    uint32_t function = 1;
    for (uint32_t level = 0; level < LEVELS; level++) {
        const uint32_t caller = paths.nodes[node].function;
        node = sj_path_nodes_child(&paths, node, function);
        assert_int_not_equal(node, SJ_NO_NODE);
        assert_int_equal(paths.nodes[node].function, function);
        assert_int_equal(paths.nodes[paths.nodes[node].parent].function, caller);
        function = function == 2 && level % 5 != 0 ? 3 : function % 3 == 0 || function == 2 ? 1 : 2;
    }
    assert_in_range(paths.count, SJ_PATH_FOLD_DEPTH, SJ_PATH_FOLD_DEPTH + 16);
    sj_path_nodes_deinit(&paths);
}

static void test_shallow_recursion_keeps_every_level(void **state)
{
    (void)state;
    sj_path_nodes paths;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    uint32_t node = 0;
    for (uint32_t level = 0; level < SJ_PATH_FOLD_DEPTH; level++) {
        const uint32_t child = sj_path_nodes_child(&paths, node, 7);
        assert_int_equal(paths.nodes[child].parent, node);
        assert_int_equal(paths.nodes[child].depth, level);
        node = child;
    }
    assert_int_equal(sj_path_nodes_child(&paths, node, 7), node);
    sj_path_nodes_deinit(&paths);
}

/* main calls f, which calls itself far beyond the depth of folding. Then main calls g. */
static void test_a_folded_recursion_is_left_level_by_level(void **state)
{
    (void)state;
    enum { RECURSIONS = 3 * SJ_PATH_FOLD_DEPTH, EVENTS = 2 * RECURSIONS + 4 };
    static const uint32_t functions[] = {10, 20, 30}; /* main, f, g */
    uint16_t *symbols = calloc(EVENTS, sizeof(*symbols));
    uint64_t *ticks = calloc(EVENTS, sizeof(*ticks));
    sj_callgraph *graph;
    sj_block_summary summary;
    symbols[0] = 1;
    symbols[EVENTS - 3] = 3;
    for (size_t i = 0; i < EVENTS; i++) {
        ticks[i] = 100 + i;
        symbols[i] = i >= 1 && i <= RECURSIONS ? 2 : symbols[i];
    }
    const sj_block block = {.header = {.kind = SJ_BLOCK_CALLS,
                                       .stream = 1,
                                       .event_count = EVENTS,
                                       .call_count = RECURSIONS + 2,
                                       .first_ticks = ticks[0],
                                       .last_ticks = ticks[EVENTS - 1],
                                       .clock_step = 1},
                            .functions = functions,
                            .function_count = 3,
                            .symbols16 = symbols,
                            .ticks = ticks};
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_callgraph_apply(graph, &block, NULL, NULL, &summary), SJ_OK);
    assert_int_equal(sj_callgraph_settle(graph), SJ_OK);
    uint64_t calls[31] = {0};
    uint64_t below = 0;
    for (uint32_t node = sj_callgraph_node_count(graph) - 1; node != 0; node--) {
        const sj_path_node path = sj_callgraph_node(graph, node);
        if (path.function == 20) { /* no time counts twice */
            assert_int_equal(path.total_ticks, path.self_ticks + below);
            below = path.total_ticks;
        }
    }
    assert_int_equal(below, 2 * RECURSIONS - 1);
    for (uint32_t node = 0; node < sj_callgraph_node_count(graph); node++) {
        const sj_path_node path = sj_callgraph_node(graph, node);
        calls[path.function] += path.calls;
        if (path.function == 30) {
            assert_int_equal(sj_callgraph_node(graph, path.parent).function, 10);
        }
    }
    assert_int_equal(calls[0], 0);
    assert_int_equal(calls[10], 1);
    assert_int_equal(calls[20], RECURSIONS);
    assert_int_equal(calls[30], 1);
    sj_callgraph_free(graph);
    free(symbols);
    free(ticks);
}

static void test_paths_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    sj_path_nodes paths;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    assert_int_equal(paths.most, SJ_MOST_PATHS);
    paths.most = 100;
    for (uint32_t function = 1; function < paths.most; function++) {
        assert_int_not_equal(sj_path_nodes_child(&paths, 0, function), SJ_NO_NODE);
    }
    assert_int_equal(sj_path_nodes_child(&paths, 0, 100), SJ_NO_NODE);
    assert_int_equal(sj_path_nodes_failure(&paths), SJ_ELIMIT);
    assert_int_not_equal(sj_path_nodes_child(&paths, 0, 50), SJ_NO_NODE);
    sj_path_nodes_deinit(&paths);
}

static void count_calls(sj_path_nodes *paths, uint32_t *random, uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        *random = *random * 1664525u + 1013904223u;
        const uint32_t node = 1 + (*random >> 8) % (paths->count - 1);
        sj_path_nodes_touch(paths, node);
        assert_int_equal(sj_path_histogram_add(&paths->nodes[node].histogram, *random >> 12, 1),
                         SJ_OK);
    }
}

/* Checks that a function's histogram is the sum of its paths' histograms. Compares bin by bin,
 * because a histogram may hold empty octaves. */
static void check_sum(const sj_path_nodes *paths, uint32_t function)
{
    sj_histogram expected = {0};
    for (uint32_t node = 1; node < paths->count; node++) {
        if (paths->nodes[node].function == function) {
            assert_int_equal(sj_path_histogram_add_to(&paths->nodes[node].histogram, &expected),
                             SJ_OK);
        }
    }
    uint8_t bytes[2][1 << 14];
    const sj_histogram *sum = sj_function_histograms_find(&paths->functions, function);
    assert_non_null(sum);
    const size_t size = sj_histogram_encode(&expected, bytes[0], sizeof(bytes[0]));
    assert_in_range(size, 2, sizeof(bytes[0]));
    assert_int_equal(sj_histogram_encode(sum, bytes[1], sizeof(bytes[1])), size);
    assert_memory_equal(bytes[0], bytes[1], size);
    sj_histogram_deinit(&expected);
}

static void test_histograms_of_functions_follow_their_paths(void **state)
{
    (void)state;
    enum { FUNCTIONS = 200, PATHS = 3000, ROUNDS = 20 };
    sj_path_nodes paths;
    uint32_t random = 1;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    assert_null(sj_function_histograms_find(&paths.functions, 1));
    for (uint32_t path = 0; path < PATHS; path++) {
        const uint32_t parent = path / FUNCTIONS;
        assert_int_not_equal(sj_path_nodes_child(&paths, parent, 1 + path % FUNCTIONS), SJ_NO_NODE);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        count_calls(&paths, &random, round == 0 ? 4 * PATHS : PATHS / 10);
        assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
        /* a flush that failed: nodes that are folded and dirty change again */
        if (round % 3 == 1) {
            count_calls(&paths, &random, PATHS / 10);
            assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
        }
        assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
        sj_path_nodes_clean(&paths);
        for (uint32_t function = 1; function <= FUNCTIONS; function++) {
            check_sum(&paths, function);
        }
    }
    sj_path_nodes_deinit(&paths);
}

/* Each search moves its path to the place where the search began. All paths must still be found. */
static void test_paths_are_found_in_any_order_of_searches(void **state)
{
    (void)state;
    enum { FUNCTIONS = 40, PARENTS = 50, ROUNDS = 30 };
    static uint32_t nodes[PARENTS][FUNCTIONS + 1];
    sj_path_nodes paths;
    uint32_t random = 7;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    for (uint32_t i = 0; i < PARENTS * FUNCTIONS; i++) {
        const uint32_t parent = i / FUNCTIONS;
        const uint32_t function = 1 + i % FUNCTIONS;
        nodes[parent][function] = sj_path_nodes_child(&paths, parent, function);
        assert_int_equal(nodes[parent][function], i + 1);
    }
    for (uint32_t i = 0; i < ROUNDS * PARENTS * FUNCTIONS; i++) {
        random = random * 1664525u + 1013904223u;
        const uint32_t parent = (random >> 8) % PARENTS;
        const uint32_t function = 1 + (random >> 16) % FUNCTIONS;
        assert_int_equal(sj_path_nodes_child(&paths, parent, function), nodes[parent][function]);
    }
    assert_int_equal(paths.count, PARENTS * FUNCTIONS + 1);
    sj_path_nodes_deinit(&paths);
}

static bool is_quiet(const sj_path_line *node, uint64_t duration)
{
    return duration - node->quiet_low < node->quiet_count;
}

static void test_calls_of_the_quiet_range_change_only_sums_and_a_bin(void **state)
{
    (void)state;
    sj_path_nodes paths;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    const uint32_t number = sj_path_nodes_child(&paths, 0, 1);
    sj_path_line *node = &paths.nodes[number];
    sj_path_nodes_quieten(&paths, number);
    assert_int_equal(node->quiet_count, 0); /* no call yet */
    assert_int_equal(sj_path_nodes_count(&paths, number, 100, 90), SJ_OK);
    assert_int_equal(sj_path_nodes_count(&paths, number, 5000, 10), SJ_OK);
    sj_path_nodes_quieten(&paths, number);
    assert_int_equal(node->quiet_count, 0); /* few calls: a list of bins */
    assert_int_equal(sj_path_histogram_add(&node->histogram, 100, SJ_PATH_COUNT_MOST), SJ_OK);
    node->slow_ticks = 4000;
    sj_path_nodes_quieten(&paths, number);
    for (uint64_t duration = 0; duration < 6000; duration++) {
        assert_int_equal(is_quiet(node, duration), duration >= 100 && duration <= 4000);
    }
    assert_true(sj_path_node_count_quiet(node, 4000, 7));
    assert_false(sj_path_node_count_quiet(node, 99, 7));
    assert_int_equal(node->calls, 3);
    assert_int_equal(node->total_ticks, 9100);
    assert_int_equal(node->self_ticks, 107);
    sj_histogram expected = {0};
    assert_int_equal(sj_histogram_add(&expected, 100, SJ_PATH_COUNT_MOST + 1), SJ_OK);
    assert_int_equal(sj_histogram_add(&expected, 4000, 1), SJ_OK);
    assert_int_equal(sj_histogram_add(&expected, 5000, 1), SJ_OK);
    assert_int_equal(node->histogram.octave_count, expected.octave_count);
    assert_memory_equal(node->histogram.bins.octaves, expected.octaves,
                        expected.octave_count * sizeof(*expected.octaves));
    sj_histogram_deinit(&expected);
    assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
    assert_int_equal(node->quiet_count, 0); /* its histogram is included in its function's */
    sj_path_nodes_clean(&paths);
    sj_path_nodes_quieten(&paths, number);
    assert_int_equal(node->quiet_count, 0); /* the node is not dirty */
    sj_path_nodes_deinit(&paths);
}

/* A store's rows may hold any values. */
static void test_a_stored_node_is_not_quiet_beyond_its_histogram(void **state)
{
    (void)state;
    sj_path_nodes paths;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    sj_path_node stored = {.function = 1, .calls = 1, .max_ticks = UINT64_MAX};
    /* 512 to 1023, as octaves */
    assert_int_equal(sj_path_histogram_add(&stored.histogram, 1000, SJ_PATH_COUNT_MOST + 1), SJ_OK);
    assert_int_equal(sj_path_nodes_restore(&paths, &stored), SJ_OK);
    assert_int_equal(paths.nodes[1].quiet_count, 0);
    sj_path_nodes_touch(&paths, 1);
    paths.nodes[1].slow_ticks = UINT32_MAX;
    sj_path_nodes_quieten(&paths, 1);
    const uint64_t beyond[] = {0, 511, 1024, UINT64_MAX};
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        assert_false(is_quiet(&paths.nodes[1], beyond[i]));
    }
    assert_true(is_quiet(&paths.nodes[1], 512));
    assert_true(is_quiet(&paths.nodes[1], 1023));
    sj_path_histogram_deinit(&stored.histogram);
    sj_path_nodes_deinit(&paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_deep_recursion_is_folded_with_exact_edges),
        cmocka_unit_test(test_a_folded_recursion_is_left_level_by_level),
        cmocka_unit_test(test_a_stored_node_is_not_quiet_beyond_its_histogram),
        cmocka_unit_test(test_histograms_of_functions_follow_their_paths),
        cmocka_unit_test(test_paths_are_found_in_any_order_of_searches),
        cmocka_unit_test(test_shallow_recursion_keeps_every_level),
        cmocka_unit_test(test_calls_of_the_quiet_range_change_only_sums_and_a_bin),
        cmocka_unit_test(test_paths_beyond_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
