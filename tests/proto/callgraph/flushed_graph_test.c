/* Between blocks, the sums of a graph are written, its histograms are folded, and other sums are
 * merged. This changes neither what the graph counts nor what it has to write. SJ_LONG=1: five
 * times as many calls. */
#include "proto/callgraph/callgraph.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FUNCTIONS = 30 };

typedef struct recording {
    call_trace trace;
    block_store store;
    sj_block_decoder *decoder;
} recording;

/* Most durations of the first shape are of one octave, so many are like those before. Those of the
 * second shape are of ten octaves. */
static const trace_shape shapes[] = {
    {.seed = 5,
     .calls = 6000,
     .functions = FUNCTIONS,
     .max_depth = 8,
     .tick_step = 1,
     .tick_choices = 40,
     .throw_per_million = 5000},
    {.seed = 6,
     .calls = 6000,
     .functions = FUNCTIONS,
     .max_depth = 30,
     .base_depth = 3,
     .tick_step = 26,
     .tick_choices = 500,
     .realistic = true},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void make_recording(const trace_shape *shape, recording *made)
{
    sj_assembler_counters counters;
    trace_shape wanted = *shape;
    wanted.calls *= getenv("SJ_LONG") != NULL ? 5 : 1;
    *made = (recording){.trace = trace_generate(&wanted)};
    trace_assemble(&made->trace, 200, &made->store, &counters);
    assert_int_equal(sj_block_decoder_new(&made->decoder), SJ_OK);
    assert_true(made->store.count > 50);
}

static void free_recording(recording *made)
{
    sj_block_decoder_free(made->decoder);
    block_store_free(&made->store);
    trace_free(&made->trace);
}

static sj_callgraph *new_graph(void)
{
    sj_callgraph *graph;
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    return graph;
}

static void apply(recording *from, size_t number, sj_callgraph *graph)
{
    const stored_block *stored = &from->store.blocks[number];
    sj_block block;
    sj_block_summary summary;
    assert_int_equal(stored->header.kind, SJ_BLOCK_CALLS);
    assert_int_equal(sj_block_decode(from->decoder,
                                     (sj_slice){.data = stored->data, .size = stored->size},
                                     SJ_WANT_ALL, &block),
                     SJ_OK);
    assert_int_equal(sj_callgraph_apply(graph, &block, block_store_lookup, &from->store, &summary),
                     SJ_OK);
}

/* Compares bin by bin, because a histogram may hold empty octaves. */
static void assert_same_histogram(const sj_histogram *left, const sj_histogram *right)
{
    uint8_t bytes[2][1 << 14];
    const size_t size = sj_histogram_encode(left, bytes[0], sizeof(bytes[0]));
    assert_int_not_equal(size, 0);
    assert_int_equal(sj_histogram_encode(right, bytes[1], sizeof(bytes[1])), size);
    assert_memory_equal(bytes[0], bytes[1], size);
}

static void assert_same_path_histogram(const sj_path_histogram *left,
                                       const sj_path_histogram *right)
{
    sj_histogram sums[2] = {0};
    assert_int_equal(sj_path_histogram_add_to(left, &sums[0]), SJ_OK);
    assert_int_equal(sj_path_histogram_add_to(right, &sums[1]), SJ_OK);
    assert_same_histogram(&sums[0], &sums[1]);
    sj_histogram_deinit(&sums[0]);
    sj_histogram_deinit(&sums[1]);
}

/* Checks that the nodes of `graph` hold `times` times what those of `plain` hold. */
static void assert_holds(const sj_callgraph *graph, const sj_callgraph *plain, uint64_t times)
{
    assert_int_equal(sj_callgraph_node_count(graph), sj_callgraph_node_count(plain));
    for (uint32_t i = 1; i < sj_callgraph_node_count(plain); i++) {
        const sj_path_node held = sj_callgraph_node(graph, i);
        const sj_path_node wanted = sj_callgraph_node(plain, i);
        const sj_path_node *node = &held;
        const sj_path_node *expected = &wanted;
        sj_path_histogram histogram = {0};
        for (uint64_t k = 0; k < times; k++) {
            assert_int_equal(sj_path_histogram_merge(&histogram, &expected->histogram), SJ_OK);
        }
        assert_int_equal(node->parent, expected->parent);
        assert_int_equal(node->function, expected->function);
        assert_int_equal(node->calls, times * expected->calls);
        assert_int_equal(node->total_ticks, times * expected->total_ticks);
        assert_int_equal(node->self_ticks, times * expected->self_ticks);
        assert_int_equal(node->min_ticks, expected->min_ticks);
        assert_int_equal(node->max_ticks, expected->max_ticks);
        assert_same_path_histogram(&node->histogram, &histogram);
        sj_path_histogram_deinit(&histogram);
    }
}

/* Checks that each node that has changed since the last flush is dirty. `calls` are the counts at
 * that flush; with `flush`, stores the present ones. */
static void assert_changes_are_dirty(const sj_callgraph *graph, uint64_t *calls, bool flush)
{
    for (uint32_t i = 1; i < sj_callgraph_node_count(graph); i++) {
        const sj_path_node node = sj_callgraph_node(graph, i);
        assert_true(node.calls == calls[i] || node.dirty);
        calls[i] = flush ? node.calls : calls[i];
    }
}

static void assert_functions_are_sums(const sj_callgraph *graph)
{
    for (uint32_t function = 1; function <= FUNCTIONS; function++) {
        const sj_histogram *held = sj_callgraph_function_histogram(graph, function);
        sj_histogram sum = {0};
        for (uint32_t i = 1; i < sj_callgraph_node_count(graph); i++) {
            const sj_path_node node = sj_callgraph_node(graph, i);
            if (node.function == function) {
                assert_int_equal(sj_path_histogram_add_to(&node.histogram, &sum), SJ_OK);
            }
        }
        if (held != NULL) {
            assert_same_histogram(held, &sum);
        } else {
            assert_int_equal(sum.octave_count, 0);
        }
        sj_histogram_deinit(&sum);
    }
}

/* Writes a graph between some of the blocks. With `folds`, also folds its histograms. */
static void write_between_blocks(recording *from, bool folds)
{
    uint64_t random = 1;
    sj_callgraph *plain = new_graph();
    sj_callgraph *graph = new_graph();
    uint64_t *calls = calloc(from->trace.call_count + 1, sizeof(*calls));
    assert_non_null(calls);
    for (size_t number = 0; number < from->store.count; number++) {
        apply(from, number, plain);
        apply(from, number, graph);
        const uint64_t chance = trace_random(&random) % 4;
        assert_changes_are_dirty(graph, calls, chance == 0);
        if (folds && chance <= 1) { /* a flush, or a flush that fails after the histograms */
            assert_int_equal(sj_callgraph_fold_histograms(graph), SJ_OK);
            assert_functions_are_sums(graph);
        }
        if (chance == 0) {
            sj_callgraph_clean(graph);
        }
    }
    assert_holds(graph, plain, 1);
    free(calls);
    sj_callgraph_free(graph);
    sj_callgraph_free(plain);
}

static void test_a_graph_that_is_written_between_blocks_counts_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        recording from;
        make_recording(&shapes[i], &from);
        write_between_blocks(&from, true);
        write_between_blocks(&from, false);
        free_recording(&from);
    }
}

static void merge_into(sj_callgraph *graph, const sj_callgraph *from)
{
    const uint32_t count = sj_callgraph_node_count(from) - 1;
    sj_path_node *nodes = malloc(count * sizeof(*nodes));
    assert_non_null(nodes);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = sj_callgraph_node(from, i + 1);
    }
    assert_int_equal(sj_callgraph_merge(graph, nodes, count), SJ_OK);
    free(nodes);
}

static void test_a_graph_continues_after_a_merge(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        recording from;
        make_recording(&shapes[i], &from);
        sj_callgraph *plain = new_graph();
        for (size_t number = 0; number < from.store.count; number++) {
            apply(&from, number, plain);
        }
        /* merges early, while few durations are known */
        for (size_t at = 0; at < 20; at += 1 + at / 2) {
            sj_callgraph *graph = new_graph();
            for (size_t number = 0; number < from.store.count; number++) {
                if (number == at) {
                    merge_into(graph, plain);
                }
                apply(&from, number, graph);
            }
            assert_holds(graph, plain, 2);
            sj_callgraph_free(graph);
        }
        sj_callgraph_free(plain);
        free_recording(&from);
    }
}

static int compare_longest_first(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

static size_t list_durations(const call_trace *trace, uint32_t function, uint64_t *durations)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->call_count; i++) {
        const trace_call *call = &trace->calls[i];
        if (call->function == function && call->leave_event != UINT64_MAX &&
            call->end > call->start) {
            durations[count++] = call->end - call->start;
        }
    }
    qsort(durations, count, sizeof(*durations), compare_longest_first);
    return count;
}

static void test_the_longest_calls_of_each_function_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        recording from;
        make_recording(&shapes[i], &from);
        sj_callgraph *graph = new_graph();
        for (size_t number = 0; number < from.store.count; number++) {
            apply(&from, number, graph);
        }
        uint64_t *durations = malloc(from.trace.call_count * sizeof(*durations));
        assert_non_null(durations);
        const sj_slow_calls *slow = sj_callgraph_slow_calls(graph);
        assert_true(slow->list_count > 0);
        for (uint32_t k = 0; k < slow->list_count; k++) {
            const sj_slow_list *list = &slow->lists[k];
            const size_t ended = list_durations(&from.trace, list->function, durations);
            const size_t most = SJ_SLOW_CALLS_A_FUNCTION;
            assert_int_equal(list->count, ended < most ? ended : most);
            for (uint32_t place = 0; place < list->count; place++) {
                assert_int_equal(list->calls[place].duration_ticks, durations[place]);
            }
        }
        free(durations);
        sj_callgraph_free(graph);
        free_recording(&from);
    }
}

/* After a gap, f calls h. Its callee g is truncated and called again. f may have ended in the gap,
 * so the caller of each of these calls is uncertain. */
static void test_a_call_entered_in_uncertainty_stays_untrusted(void **state)
{
    (void)state;
    enum { F = 1, G = 2, H = 3, EVENTS = 9 };
    const uint32_t functions[] = {F, G, H};
    const uint16_t symbols[EVENTS] = {F, H, G, 0, G, 0, G, 0, 0};
    const uint64_t ticks[EVENTS] = {100, 110, 120, 130, 140, 150, 160, 170, 180};
    const sj_gap gap = {.before_event = 1, .reason = SJ_GAP_RING_FULL};
    const sj_block_ending ending = {.event = 3, .ending = SJ_ENDING_TRUNCATED};
    const sj_block block = {.header = {.version = SJ_BLOCK_VERSION,
                                       .kind = SJ_BLOCK_CALLS,
                                       .stream = 1,
                                       .event_count = EVENTS,
                                       .call_count = 5,
                                       .first_ticks = 100,
                                       .last_ticks = 180,
                                       .clock_step = 1,
                                       .end_depth = 1},
                            .functions = functions,
                            .function_count = 3,
                            .symbols16 = symbols,
                            .ticks = ticks,
                            .endings = &ending,
                            .ending_count = 1,
                            .gaps = &gap,
                            .gap_count = 1};
    sj_callgraph *graph = new_graph();
    sj_block_summary summary;
    assert_int_equal(sj_callgraph_apply(graph, &block, NULL, NULL, &summary), SJ_OK);
    assert_int_equal(sj_callgraph_node_count(graph), 4);
    const sj_path_node h = sj_callgraph_node(graph, 2);
    const sj_path_node g = sj_callgraph_node(graph, 3);
    assert_int_equal(h.function, H);
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.untrusted, 1);
    assert_int_equal(g.function, G);
    assert_int_equal(g.calls, 3);
    assert_int_equal(g.untrusted, 3);
    sj_callgraph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_graph_that_is_written_between_blocks_counts_the_same),
        cmocka_unit_test(test_a_graph_continues_after_a_merge),
        cmocka_unit_test(test_the_longest_calls_of_each_function_are_kept),
        cmocka_unit_test(test_a_call_entered_in_uncertainty_stays_untrusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
