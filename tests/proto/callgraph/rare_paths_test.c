/* Tests folding: which paths are folded, and that folding changes only the sums of paths. */
#include "proto/callgraph/path_costs.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FUNCTIONS = 12, EDGES = (FUNCTIONS + 1) * (FUNCTIONS + 1) };

typedef struct edge_sums {
    uint64_t calls[EDGES], total[EDGES], self[EDGES], unwound[EDGES];
    uint64_t outer_total[FUNCTIONS + 1]; /* of calls that are not recursive */
    /* of calls that are not inside another call of their edge */
    uint64_t edge_total[EDGES];
    uint64_t measured[FUNCTIONS + 1], cpu[FUNCTIONS + 1], outer_cpu[FUNCTIONS + 1];
} edge_sums;

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

static void add_calls(sj_path_nodes *paths, uint32_t *random, uint32_t walks)
{
    for (uint32_t i = 0; i < walks; i++) {
        uint32_t node = 0;
        for (uint32_t depth = 1 + next_random(random) % 7; depth > 0; depth--) {
            const uint32_t width = depth > 2 ? 3 : FUNCTIONS;
            node = sj_path_nodes_child(paths, node, 1 + next_random(random) % width);
            assert_int_not_equal(node, SJ_NO_NODE);
        }
        const uint64_t duration = next_random(random) % 5000;
        assert_int_equal(sj_path_nodes_count(paths, node, duration, duration / 2), SJ_OK);
        assert_int_equal(sj_path_nodes_count_extra(paths, node, i % 3 == 0, 0), SJ_OK);
        if (paths->nodes[node].function % 3 == 0) { /* some functions are measured */
            const bool is_nested = paths->nodes[node].recursive;
            const sj_path_cost cost = {.calls = 1,
                                       .known = 1U << SJ_COST_CPU_NS,
                                       .all = {[SJ_COST_CPU_NS] = duration},
                                       .outermost = {[SJ_COST_CPU_NS] = is_nested ? 0 : duration}};
            assert_int_equal(sj_path_costs_add(paths, node, &cost), SJ_OK);
        }
    }
}

static edge_sums sum_up(const sj_path_nodes *paths)
{
    edge_sums sums = {0};
    for (uint32_t i = 1; i < paths->count; i++) {
        const sj_path_node copy = sj_path_nodes_get(paths, i);
        const sj_path_node *node = &copy;
        const uint32_t caller = node->parent != 0 ? paths->nodes[node->parent].function : 0;
        const uint32_t edge = caller * (FUNCTIONS + 1) + node->function;
        assert_true(node->parent < i);
        sums.calls[edge] += node->calls;
        sums.total[edge] += node->total_ticks;
        sums.self[edge] += node->self_ticks;
        sums.unwound[edge] += node->unwound;
        sums.edge_total[edge] += sj_path_nodes_is_nested(paths, i) ? 0 : node->total_ticks;
        sums.outer_total[node->function] += node->recursive ? 0 : node->total_ticks;
        const sj_path_cost *cost = sj_path_costs_of(paths, i);
        if (cost != NULL) {
            assert_int_equal(cost->function, node->function);
            assert_int_equal(cost->known, 1U << SJ_COST_CPU_NS);
            sums.measured[node->function] += cost->calls;
            sums.cpu[node->function] += cost->all[SJ_COST_CPU_NS];
            sums.outer_cpu[node->function] += cost->outermost[SJ_COST_CPU_NS];
        }
    }
    return sums;
}

static void check_histograms(const sj_path_nodes *paths, const sj_path_nodes *whole)
{
    for (uint32_t function = 1; function <= FUNCTIONS; function++) {
        uint8_t bytes[2][1 << 14];
        const sj_histogram *left = sj_function_histograms_find(&paths->functions, function);
        const sj_histogram *right = sj_function_histograms_find(&whole->functions, function);
        assert_non_null(left);
        assert_non_null(right);
        const size_t size = sj_histogram_encode(left, bytes[0], sizeof(bytes[0]));
        assert_int_equal(sj_histogram_encode(right, bytes[1], sizeof(bytes[1])), size);
        assert_memory_equal(bytes[0], bytes[1], size);
    }
}

/* Folds repeatedly while calls come, and compares the sums with a table that keeps every path. */
static void test_sums_of_functions_and_edges_are_exact(void **state)
{
    (void)state;
    enum { ROUNDS = 12, WALKS = 2000, KEEP = 100 };
    sj_path_nodes paths, whole;
    uint32_t random = 1, same = 1;
    uint64_t calls = 0;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    assert_int_equal(sj_path_nodes_init(&whole), SJ_OK);
    for (int round = 0; round < ROUNDS; round++) {
        sj_path_folding folding;
        add_calls(&paths, &random, WALKS);
        add_calls(&whole, &same, WALKS);
        if (round % 3 == 1) {
            assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
            sj_path_nodes_clean(&paths);
        }
        const uint32_t before = paths.count;
        assert_int_equal(sj_path_nodes_fold_rare(&paths, KEEP, &folding), SJ_OK);
        assert_int_equal(folding.moved_count, before);
        assert_in_range(paths.count, 2, KEEP + 4 * EDGES + 3 * FUNCTIONS);
        assert_true(folding.paths > 0);
        calls += folding.calls;
        sj_path_folding_deinit(&folding);
        assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
    }
    assert_int_equal(sj_path_nodes_fold(&whole), SJ_OK);
    const edge_sums left = sum_up(&paths);
    const edge_sums right = sum_up(&whole);
    assert_memory_equal(&left, &right, sizeof(left));
    check_histograms(&paths, &whole);
    uint64_t rare_calls = 0;
    for (uint32_t i = 1; i < paths.count; i++) {
        uint32_t root = i;
        while (paths.nodes[root].parent != 0) {
            root = paths.nodes[root].parent;
        }
        rare_calls += paths.nodes[root].rare ? paths.nodes[i].calls : 0;
    }
    assert_int_equal(rare_calls, calls);
    sj_path_nodes_deinit(&paths);
    sj_path_nodes_deinit(&whole);
}

static uint32_t add_path(sj_path_nodes *paths, uint32_t parent, uint32_t function, uint32_t calls,
                         uint64_t duration)
{
    const uint32_t node = sj_path_nodes_child(paths, parent, function);
    for (uint32_t i = 0; i < calls; i++) {
        assert_int_equal(sj_path_nodes_count(paths, node, duration, duration), SJ_OK);
    }
    return node;
}

/* Paths that are called often or take long stay, with their callers. The other functions lose their
 * path. */
static void test_the_rarest_paths_are_folded(void **state)
{
    (void)state;
    sj_path_nodes paths;
    sj_path_folding folding;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    const uint32_t main_node = add_path(&paths, 0, 1, 1, 1);
    const uint32_t setup = add_path(&paths, main_node, 2, 1, 1);
    const uint32_t long_one = add_path(&paths, setup, 3, 1, 1000000);
    const uint32_t rare = add_path(&paths, main_node, 4, 2, 1);
    const uint32_t rarer = add_path(&paths, rare, 5, 1, 1);
    const uint32_t often = add_path(&paths, main_node, 6, 1000, 1);
    assert_int_equal(sj_path_nodes_fold_rare(&paths, 3, &folding), SJ_OK);
    assert_int_equal(folding.paths, 2);
    assert_int_equal(folding.calls, 3);
    const sj_path_line *gone = &paths.nodes[folding.moved[rarer]];
    const sj_path_line *stays = &paths.nodes[folding.moved[long_one]];
    assert_int_equal(gone->function, 5);
    assert_int_equal(paths.nodes[gone->parent].function, 4);
    assert_true(paths.nodes[gone->parent].rare);
    assert_int_equal(paths.nodes[folding.moved[rare]].calls, 2);
    assert_true(paths.nodes[paths.nodes[folding.moved[rare]].parent].rare);
    assert_int_equal(stays->depth, 2);
    assert_int_equal(stays->parent, folding.moved[setup]);
    assert_int_equal(paths.nodes[folding.moved[often]].parent, folding.moved[main_node]);
    assert_false(paths.nodes[folding.moved[main_node]].rare);
    /* A path that is called again is counted from 0. */
    const uint32_t again = sj_path_nodes_child(&paths, folding.moved[main_node], 4);
    assert_int_equal(paths.nodes[again].calls, 0);
    sj_path_folding_deinit(&folding);
    sj_path_nodes_deinit(&paths);
}

/* A table that is read back from its rows is the same, including rare nodes. */
static void test_rare_nodes_are_restored(void **state)
{
    (void)state;
    sj_path_nodes paths, restored;
    sj_path_folding folding;
    uint32_t random = 7;
    assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
    assert_int_equal(sj_path_nodes_init(&restored), SJ_OK);
    add_calls(&paths, &random, 2000);
    assert_int_equal(sj_path_nodes_fold_rare(&paths, 50, &folding), SJ_OK);
    sj_path_folding_deinit(&folding);
    for (uint32_t i = 1; i < paths.count; i++) {
        const sj_path_node node = sj_path_nodes_get(&paths, i);
        const sj_path_cost *cost = sj_path_costs_of(&paths, i);
        assert_int_equal(sj_path_nodes_restore(&restored, &node), SJ_OK);
        if (cost != NULL) {
            assert_int_equal(sj_path_costs_add(&restored, i, cost), SJ_OK);
        }
    }
    sj_path_node odd = {.parent = 1, .function = 2, .depth = 1, .rare = true};
    assert_int_equal(sj_path_nodes_restore(&restored, &odd), SJ_ECORRUPT);
    assert_int_equal(sj_path_nodes_fold_rare(&restored, 50, &folding), SJ_OK);
    assert_int_equal(folding.paths, 0);
    sj_path_folding_deinit(&folding);
    const edge_sums left = sum_up(&paths);
    const edge_sums right = sum_up(&restored);
    assert_memory_equal(&left, &right, sizeof(left));
    sj_path_nodes_deinit(&paths);
    sj_path_nodes_deinit(&restored);
}

static void test_a_failed_allocation_leaves_the_paths_unchanged(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        sj_path_nodes paths;
        sj_path_folding folding = {0};
        uint32_t random = 3;
        assert_int_equal(sj_path_nodes_init(&paths), SJ_OK);
        add_calls(&paths, &random, 500);
        const edge_sums before = sum_up(&paths);
        const uint32_t count = paths.count;
        fail_alloc_at(n);
        const sj_status status = sj_path_nodes_fold_rare(&paths, 20, &folding);
        const bool failed = fail_alloc_stop();
        const edge_sums after = sum_up(&paths);
        assert_memory_equal(&before, &after, sizeof(before));
        assert_true(status == SJ_OK || failed); /* qsort sorts in place without memory */
        if (status != SJ_OK) {
            assert_int_equal(status, SJ_ENOMEM);
            assert_int_equal(paths.count, count);
        }
        assert_int_equal(sj_path_nodes_fold(&paths), SJ_OK);
        sj_path_folding_deinit(&folding);
        sj_path_nodes_deinit(&paths);
        if (!failed) {
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_functions_and_edges_are_exact),
        cmocka_unit_test(test_the_rarest_paths_are_folded),
        cmocka_unit_test(test_rare_nodes_are_restored),
        cmocka_unit_test(test_a_failed_allocation_leaves_the_paths_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
