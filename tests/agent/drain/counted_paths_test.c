/* Runs random programs in which some calls are counted instead of timed. Call paths, counts and
 * callers, computed from the records in the arena, equal those of a recording that times every
 * call. So do the times of paths whose calls are all timed. */
#include "agent/drain/untimed_records.h"
#include "proto/callgraph/callgraph.h"
#include "tests/agent/drain/record_places.h"
#include "tests/support/call_trace.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

enum {
    FUNCTIONS = 24,
    CALLS = 8000,
    MOST_DEPTH = 60,
    FRAME_BYTES = 64,
    TIMED_ONE_IN = 8,
    SEEDS = 24
};

/* The records that the probes of a thread have written. */
typedef struct thread_places {
    record_places places;
    uint64_t whole_stack; /* stack address of the last full-size record */
} thread_places;

static void put_whole_at(thread_places *to, const sj_record *record, uint64_t stack)
{
    put_whole(&to->places, *record);
    to->whole_stack = stack;
}

static void put_untimed(thread_places *to, const sj_record *record)
{
    const uint64_t stack = sj_record_frame(record);
    const uint32_t tag = sj_record_tag(record);
    const bool is_exit = tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE;
    const uint64_t reach = to->whole_stack - SJ_SHORT_REACH_BYTES / 2;
    if (stack - reach >= SJ_SHORT_REACH_BYTES) {
        const sj_record untimed =
            trace_record(tag >> SJ_RECORD_FUNCTION_BITS, tag & SJ_RECORD_FUNCTION_MASK,
                         stack | SJ_STACK_UNTIMED, 0);
        put_whole_at(to, &untimed, stack);
        return;
    }
    put_word(&to->places, SJ_SHORT_FILLER | (uint32_t)is_exit << SJ_SHORT_EXIT_BIT |
                              (uint32_t)(stack / SJ_STACK_ALIGNMENT & 0xfff) << SJ_SHORT_STACK_BIT |
                              (tag & SJ_RECORD_FUNCTION_MASK));
}

/* Writes the records of probes that count the calls of functions up to `counted`. */
static void write_places(const call_trace *trace, uint32_t counted, uint64_t *random,
                         thread_places *to)
{
    bool is_untimed[MOST_DEPTH + 1] = {false};
    for (size_t i = 0; i < trace->record_count; i++) {
        const sj_record *record = &trace->records[i];
        const uint64_t stack = sj_record_frame(record);
        const uint32_t tag = sj_record_tag(record);
        const size_t depth = (TRACE_STACK_HIGH - stack) / FRAME_BYTES - 1;
        assert_true(depth <= MOST_DEPTH);
        if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER) {
            is_untimed[depth] =
                i != 0 && tag <= counted && trace_random(random) % TIMED_ONE_IN != 0;
        }
        if (is_untimed[depth]) {
            put_untimed(to, record);
        } else {
            put_whole_at(to, record, stack);
        }
    }
}

/* Returns the trace as full-size records, with the times that the decoder gives them. */
static call_trace count_calls(const call_trace *trace, uint32_t counted, uint64_t seed)
{
    uint64_t random = seed;
    thread_places made = {.places.list = calloc(trace->record_count, sizeof(sj_record))};
    call_trace given = {.records = calloc(trace->record_count, sizeof(sj_record)),
                        .end_ticks = trace->end_ticks};
    sj_untimed_records *untimed =
        sj_untimed_records_new(NULL, TRACE_STACK_LOW, TRACE_STACK_HIGH, false);
    assert_true(made.places.list != NULL && given.records != NULL && untimed != NULL);
    write_places(trace, counted, &random, &made);
    sj_record *records = NULL;
    size_t count = 0;
    uint64_t undecided = 0;
    for (size_t at = 0; at < made.places.count;) {
        size_t portion = 1 + trace_random(&random) % 700;
        portion = portion < made.places.count - at ? portion : made.places.count - at;
        assert_int_equal(sj_untimed_records_read(untimed, made.places.list + at, portion,
                                                 trace->end_ticks, &records, &count, &undecided),
                         SJ_OK);
        assert_int_equal(undecided, 0);
        memcpy(given.records + given.record_count, records, count * sizeof(*records));
        given.record_count += count;
        at += portion;
    }
    assert_int_equal(sj_untimed_records_settle(untimed, trace->end_ticks, &records, &count), SJ_OK);
    memcpy(given.records + given.record_count, records, count * sizeof(*records));
    given.record_count += count;
    assert_int_equal(given.record_count, trace->record_count);
    sj_untimed_records_free(untimed);
    free(made.places.list);
    return given;
}

static sj_callgraph *make_graph(const call_trace *trace, uint32_t block_events)
{
    block_store store = {0};
    sj_assembler_counters counters;
    sj_block_decoder *decoder;
    sj_callgraph *graph;
    trace_assemble(trace, block_events, &store, &counters);
    assert_int_equal(counters.orphan_exits, 0);
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    for (size_t i = 0; i < store.count; i++) {
        const sj_slice bytes = {.data = store.blocks[i].data, .size = store.blocks[i].size};
        sj_block block;
        sj_block_summary summary;
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        if (block.header.kind == SJ_BLOCK_CALLS) {
            assert_int_equal(
                sj_callgraph_apply(graph, &block, block_store_lookup, &store, &summary), SJ_OK);
        }
    }
    sj_block_decoder_free(decoder);
    block_store_free(&store);
    return graph;
}

/* `is_exact`: true if no exception ends a timed call at an estimated time. */
static void compare_paths(const sj_callgraph *exact, const sj_callgraph *found, uint32_t counted,
                          bool is_exact)
{
    assert_int_equal(sj_callgraph_node_count(exact), sj_callgraph_node_count(found));
    for (uint32_t i = 1; i < sj_callgraph_node_count(exact); i++) {
        const sj_path_node left = sj_callgraph_node(exact, i);
        const sj_path_node right = sj_callgraph_node(found, i);
        assert_int_equal(left.function, right.function);
        assert_int_equal(left.parent, right.parent);
        assert_int_equal(left.calls, right.calls);
        assert_int_equal(left.unwound, right.unwound);
        assert_true(right.self_ticks <= right.total_ticks);
        if (left.function > counted && is_exact) {
            assert_int_equal(left.total_ticks, right.total_ticks);
            assert_int_equal(left.min_ticks, right.min_ticks);
            assert_int_equal(left.max_ticks, right.max_ticks);
        }
    }
}

static void paths_of_both_modes_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const bool throws = seed % 2 == 0;
        const trace_shape shape = {.seed = seed,
                                   .calls = CALLS,
                                   .functions = FUNCTIONS,
                                   .max_depth = MOST_DEPTH,
                                   .throw_per_million = throws ? 20000 : 0,
                                   .tick_step = 1,
                                   .tick_choices = 60,
                                   .realistic = seed % 3 == 0,
                                   .leave_all = true};
        const uint32_t counted = (uint32_t)seed % FUNCTIONS;
        call_trace trace = trace_generate(&shape);
        call_trace given = count_calls(&trace, counted, seed);
        sj_callgraph *exact = make_graph(&trace, 3000);
        sj_callgraph *found = make_graph(&given, 3000);
        compare_paths(exact, found, counted, !throws);
        sj_callgraph_free(exact);
        sj_callgraph_free(found);
        trace_free(&trace);
        trace_free(&given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths_of_both_modes_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
