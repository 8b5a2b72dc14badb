/* Compares every aggregate and every row with a simple oracle. Calls stay open across many blocks,
 * and blocks are shuffled, repeated, lost and refused. */
#include "proto/callgraph/callgraph.h"
#include "tests/support/call_rows.h"
#include "tests/support/call_trace.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct oracle_path {
    uint32_t parent;
    uint32_t function;
    uint64_t calls, total, self, min, max, unwound, untrusted;
    sj_histogram histogram;
} oracle_path;

typedef struct oracle_tree {
    oracle_path *paths; /* [0]: root */
    size_t count;
} oracle_tree;

static uint32_t oracle_find(const oracle_tree *oracle, uint32_t parent, uint32_t function)
{
    for (uint32_t i = 1; i < oracle->count; i++) {
        if (oracle->paths[i].parent == parent && oracle->paths[i].function == function) {
            return i;
        }
    }
    return 0;
}

/* Adds up the ended calls that are marked in `counted`; NULL: all ended calls. */
static oracle_tree oracle_make(const call_trace *trace, const bool *counted, const bool *untrusted)
{
    oracle_tree made = {.paths = calloc(trace->call_count + 1, sizeof(oracle_path)), .count = 1};
    uint32_t *path = malloc((trace->call_count + 1) * sizeof(*path));
    assert_non_null(made.paths);
    assert_non_null(path);
    for (size_t i = 0; i < trace->call_count; i++) {
        const trace_call *call = &trace->calls[i];
        const uint32_t parent = call->parent != UINT32_MAX ? path[call->parent] : 0;
        path[i] = oracle_find(&made, parent, call->function);
        if (path[i] == 0) {
            path[i] = (uint32_t)made.count++;
            made.paths[path[i]] =
                (oracle_path){.parent = parent, .function = call->function, .min = UINT64_MAX};
        }
        if (call->leave_event == UINT64_MAX || (counted != NULL && !counted[i])) {
            continue;
        }
        oracle_path *at = &made.paths[path[i]];
        const uint64_t duration = call->end - call->start;
        at->calls++;
        at->total += duration;
        at->self += duration - call->child;
        at->min = duration < at->min ? duration : at->min;
        at->max = duration > at->max ? duration : at->max;
        at->unwound += call->ending == SJ_ENDING_UNWOUND;
        at->untrusted += untrusted != NULL && untrusted[i];
        assert_int_equal(sj_histogram_add(&at->histogram, duration, 1), SJ_OK);
    }
    free(path);
    return made;
}

static void oracle_free(oracle_tree *oracle)
{
    for (size_t i = 0; i < oracle->count; i++) {
        sj_histogram_deinit(&oracle->paths[i].histogram);
    }
    free(oracle->paths);
}

static void assert_same_histogram(const sj_histogram *a, const sj_histogram *b)
{
    const size_t bound = sj_histogram_encoded_bound(a);
    uint8_t *left = malloc(bound);
    uint8_t *right = malloc(bound);
    const size_t size = sj_histogram_encode(a, left, bound);
    assert_int_equal(size, sj_histogram_encode(b, right, bound));
    assert_memory_equal(left, right, size);
    free(left);
    free(right);
}

static void assert_is_histogram(const sj_path_histogram *held, const sj_histogram *expected)
{
    sj_histogram sum = {0};
    assert_int_equal(sj_path_histogram_add_to(held, &sum), SJ_OK);
    assert_same_histogram(&sum, expected);
    sj_histogram_deinit(&sum);
}

/* Checks that the graph has the paths of the oracle, with the same figures. */
static void assert_graph_is(const sj_callgraph *graph, const oracle_tree *oracle)
{
    const uint32_t count = sj_callgraph_node_count(graph);
    uint32_t *path = calloc(count, sizeof(*path));
    uint64_t calls = 0;
    uint64_t expected = 0;
    for (uint32_t i = 1; i < count; i++) {
        const sj_path_node held = sj_callgraph_node(graph, i);
        const sj_path_node *node = &held;
        path[i] = oracle_find(oracle, path[node->parent], node->function);
        assert_int_not_equal(path[i], 0);
        const oracle_path *at = &oracle->paths[path[i]];
        assert_int_equal(node->calls, at->calls);
        assert_int_equal(node->total_ticks, at->total);
        if (at->untrusted == 0) {
            assert_int_equal(node->self_ticks, at->self);
        } else { /* may include the time of missing callees */
            assert_in_range(node->self_ticks, at->self, at->total);
        }
        assert_int_equal(node->min_ticks, at->min);
        assert_int_equal(node->max_ticks, at->max);
        assert_int_equal(node->unwound, at->unwound);
        assert_int_equal(node->untrusted, at->untrusted);
        assert_is_histogram(&node->histogram, &at->histogram);
        calls += node->calls;
    }
    for (size_t i = 1; i < oracle->count; i++) {
        expected += oracle->paths[i].calls;
    }
    assert_int_equal(calls, expected);
    free(path);
}

typedef struct call_row {
    bool entered; /* a block had its entry */
    bool ended;
    uint64_t parent, start, end, self, child;
    uint32_t function, depth, ending, flags;
} call_row;

/* The rows that a store would hold, by call index. Later exits complete them in any order. */
typedef struct call_table {
    call_row *rows;
    sj_callgraph *graph;
    sj_call_reader *reader;
    sj_block_decoder *decoder;
} call_table;

static call_table table_new(size_t calls)
{
    call_table made = {.rows = calloc(calls, sizeof(call_row))};
    assert_int_equal(sj_callgraph_new(&made.graph), SJ_OK);
    assert_int_equal(sj_call_reader_new(&made.reader), SJ_OK);
    assert_int_equal(sj_block_decoder_new(&made.decoder), SJ_OK);
    return made;
}

static void table_free(call_table *table)
{
    sj_callgraph_free(table->graph);
    sj_call_reader_free(table->reader);
    sj_block_decoder_free(table->decoder);
    free(table->rows);
}

static void keep_rows(call_table *table, const sj_call_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        call_row *kept = &table->rows[rows->index[i]];
        assert_false(kept->entered);
        kept->entered = true;
        kept->parent = rows->parent[i];
        kept->start = rows->start_ticks[i];
        kept->function = rows->function[i];
        kept->depth = rows->depth[i];
        if (rows->end_ticks[i] != SJ_CALL_NOT_ENDED) {
            assert_false(kept->ended);
            kept->ended = true;
            kept->end = rows->end_ticks[i];
            kept->self = kept->end - kept->start - rows->child_ticks[i];
            kept->ending = rows->ending[i];
            kept->flags = rows->flags[i];
        }
    }
}

static void keep_late(call_table *table, const sj_block_summary *summary)
{
    for (size_t i = 0; i < summary->late_count; i++) {
        const sj_deferred_exit *late = &summary->late[i];
        call_row *kept = &table->rows[late->call_index];
        assert_false(kept->ended);
        kept->ended = true;
        kept->end = late->end_ticks;
        kept->self = late->self_ticks;
        kept->ending = late->ending;
        kept->flags = late->flags;
    }
}

static void table_apply(call_table *table, const stored_block *stored, block_store *store)
{
    sj_block block;
    sj_block_summary summary;
    const sj_call_rows *rows;
    const sj_slice bytes = {.data = stored->data, .size = stored->size};
    assert_int_equal(sj_block_decode(table->decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(sj_callgraph_apply(table->graph, &block, block_store_lookup, store, &summary),
                     SJ_OK);
    keep_late(table, &summary);
    assert_int_equal(sj_call_reader_read(table->reader, &block, block_store_lookup, store, &rows),
                     SJ_OK);
    keep_rows(table, rows);
}

static void assert_row_is(const call_row *row, const trace_call *call)
{
    assert_int_equal(row->function, call->function);
    assert_int_equal(row->start, call->start);
    assert_int_equal(row->depth, call->depth);
    assert_int_equal(row->parent, call->parent != UINT32_MAX ? call->parent : SJ_CALL_NO_PARENT);
    if (row->ended) {
        assert_int_equal(row->end, call->end);
        assert_int_equal(row->self, call->end - call->start - call->child);
        assert_int_equal(row->ending, call->ending);
    }
}

/* Returns the indexes of all CALLS blocks in random order. The caller frees them. */
static size_t *shuffled_blocks(const block_store *store, uint64_t seed, size_t *count)
{
    size_t *order = malloc((store->count + 1) * sizeof(*order));
    *count = 0;
    for (size_t i = 0; i < store->count; i++) {
        if (store->blocks[i].header.kind == SJ_BLOCK_CALLS) {
            order[(*count)++] = i;
        }
    }
    for (size_t i = *count; i > 1; i--) {
        const size_t other = trace_random(&seed) % i;
        const size_t swapped = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swapped;
    }
    return order;
}

static const trace_shape shapes[] = {
    {.seed = 1,
     .calls = 4000,
     .functions = 20,
     .max_depth = 12,
     .tick_step = 26,
     .tick_choices = 9},
    {.seed = 2,
     .calls = 4000,
     .functions = 9,
     .max_depth = 40,
     .base_depth = 20,
     .tick_step = 1,
     .tick_choices = 1000,
     .throw_per_million = 20000},
    {.seed = 3,
     .calls = 6000,
     .functions = 60,
     .max_depth = 30,
     .base_depth = 2,
     .tick_step = 26,
     .tick_choices = 5,
     .realistic = true,
     .leave_all = true},
    {.seed = 4,
     .calls = 3000,
     .functions = 3,
     .max_depth = 300,
     .base_depth = 250,
     .tick_step = 0,
     .tick_choices = 1,
     .throw_per_million = 50000,
     .leave_all = true},
};

static void test_blocks_in_any_order_give_the_calls_of_the_program(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        call_trace trace = trace_generate(&shapes[i]);
        oracle_tree truth = oracle_make(&trace, NULL, NULL);
        for (uint64_t seed = 0; seed < 4; seed++) {
            block_store store = {0};
            sj_assembler_counters counters;
            trace_assemble(&trace, (uint32_t)(64 << seed), &store, &counters);
            call_table table = table_new(trace.call_count);
            size_t count;
            size_t *order = shuffled_blocks(&store, seed, &count);
            assert_true(count > 3);
            for (size_t b = 0; b < count; b++) {
                table_apply(&table, &store.blocks[order[b]], &store);
            }
            assert_graph_is(table.graph, &truth);
            for (size_t c = 0; c < trace.call_count; c++) {
                assert_true(table.rows[c].entered);
                assert_true(table.rows[c].ended == (trace.calls[c].leave_event != UINT64_MAX));
                assert_int_equal(table.rows[c].flags, 0);
                assert_row_is(&table.rows[c], &trace.calls[c]);
            }
            free(order);
            table_free(&table);
            block_store_free(&store);
        }
        oracle_free(&truth);
        trace_free(&trace);
    }
}

static bool block_holds(const stored_block *stored, uint64_t event)
{
    return event >= stored->header.first_event &&
           event - stored->header.first_event < stored->header.event_count;
}

/* True if a call without an exit ended in a missing block: a later block does not have the call
 * among its open calls. This uses only the blocks that arrived. */
static bool ended_in_a_missing_block(const block_store *store, const bool *lost, uint64_t index,
                                     const trace_call *call, sj_block_decoder *decoder)
{
    for (size_t b = 0; b < store->count; b++) {
        const stored_block *stored = &store->blocks[b];
        if (lost[b] || stored->header.first_event <= call->enter_event) {
            continue;
        }
        sj_block block;
        const sj_slice bytes = {.data = stored->data, .size = stored->size};
        assert_int_equal(sj_block_decode(decoder, bytes, 0, &block), SJ_OK);
        bool open = false;
        for (size_t f = 0; f < block.frame_count; f++) {
            open = open || block.frames[f].call_index == index;
        }
        if (!open) {
            return true;
        }
    }
    return false;
}

static void check_with_blocks_lost(const trace_shape *shape, uint64_t seed)
{
    call_trace trace = trace_generate(shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 128, &store, &counters);
    size_t count;
    size_t *order = shuffled_blocks(&store, seed, &count);
    bool *lost = calloc(store.count, sizeof(*lost));
    call_table table = table_new(trace.call_count);
    for (size_t b = 0; b < count; b++) {
        /* the last block arrives, so that the end of the stream is known */
        lost[order[b]] = order[b] + 1 < store.count && trace_random(&seed) % 4 == 0;
        if (!lost[order[b]]) {
            table_apply(&table, &store.blocks[order[b]], &store);
        }
    }
    bool *counted = calloc(trace.call_count, sizeof(*counted));
    size_t touched = 0;
    for (size_t c = 0; c < trace.call_count; c++) {
        const trace_call *call = &trace.calls[c];
        const call_row *kept = &table.rows[c];
        bool enter_lost = false;
        bool leave_lost = false;
        for (size_t b = 0; b < store.count; b++) {
            enter_lost =
                enter_lost || (lost[b] && block_holds(&store.blocks[b], call->enter_event));
            leave_lost =
                leave_lost || (lost[b] && block_holds(&store.blocks[b], call->leave_event));
        }
        counted[c] = !leave_lost;
        touched += enter_lost || leave_lost;
        assert_true(kept->entered == !enter_lost);
        assert_true(kept->ended == (!leave_lost && call->leave_event != UINT64_MAX));
        if (kept->entered) {
            assert_row_is(kept, call); /* the self time is right even if callees were lost */
        }
        if (kept->entered && !kept->ended) {
            assert_true(leave_lost ==
                        ended_in_a_missing_block(&store, lost, c, call, table.decoder));
        }
    }
    assert_true(touched > 0);
    oracle_tree truth = oracle_make(&trace, counted, NULL);
    assert_graph_is(table.graph, &truth);
    oracle_free(&truth);
    free(counted);
    free(lost);
    free(order);
    table_free(&table);
    block_store_free(&store);
    trace_free(&trace);
}

static void test_a_lost_block_loses_only_its_own_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (uint64_t seed = 1; seed < 4; seed++) {
            check_with_blocks_lost(&shapes[i], seed);
        }
    }
}

/* Only calls that were open across the missing part of refused blocks are flagged. Calls are stored
 * completely, unless more are open at the border of a block than half a block holds. */
static void test_a_refused_block_flags_the_calls_open_across_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        call_trace trace = trace_generate(&shapes[i]);
        block_store store = {.refuse_per_million = 250000, .random = i};
        sj_assembler_counters counters;
        trace_assemble(&trace, 128, &store, &counters);
        call_table table = table_new(trace.call_count);
        bool *held = calloc(trace.call_count * 2 + 1, sizeof(*held));
        size_t count;
        size_t *order = shuffled_blocks(&store, i, &count);
        for (size_t b = 0; b < count; b++) {
            const stored_block *stored = &store.blocks[order[b]];
            table_apply(&table, stored, &store);
            stored_block_note_held(stored, table.decoder, held);
        }
        assert_true(store.refused > 0);
        bool *counted = calloc(trace.call_count, sizeof(*counted));
        bool *untrusted = calloc(trace.call_count, sizeof(*untrusted));
        uint64_t last = trace.call_count * 2; /* last event that arrived */
        for (; !held[last]; last--) {
        }
        for (size_t c = 0; c < trace.call_count; c++) {
            const trace_call *call = &trace.calls[c];
            assert_true(shapes[i].max_depth > 64 || !table.rows[c].entered || table.rows[c].ended ||
                        call->leave_event > last);
            counted[c] = call->leave_event != UINT64_MAX && held[call->leave_event];
            assert_true(!counted[c] || shapes[i].max_depth > 64 || table.rows[c].entered);
            for (uint64_t e = call->enter_event; counted[c] && e < call->leave_event; e++) {
                untrusted[c] = untrusted[c] || !held[e];
            }
            assert_true(!counted[c] || table.rows[c].ended);
            assert_true(!counted[c] ||
                        table.rows[c].flags == (uint32_t)(untrusted[c] ? SJ_CALL_GAP : 0));
        }
        oracle_tree truth = oracle_make(&trace, counted, untrusted);
        assert_graph_is(table.graph, &truth);
        oracle_free(&truth);
        free(counted);
        free(untrusted);
        free(held);
        free(order);
        table_free(&table);
        block_store_free(&store);
        trace_free(&trace);
    }
}

static void test_a_stack_deeper_than_a_key_frame_is_stored_once(void **state)
{
    (void)state;
    const trace_shape shape = {.seed = 5,
                               .calls = 24000,
                               .functions = 2,
                               .max_depth = 9100,
                               .base_depth = 9000,
                               .tick_step = 3,
                               .tick_choices = 4,
                               .leave_all = true};
    call_trace trace = trace_generate(&shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 1000, &store, &counters);
    size_t count;
    size_t *order = shuffled_blocks(&store, 5, &count);
    assert_true(store.count > count);
    assert_true(store.count - count < 20);
    call_table table = table_new(trace.call_count);
    for (size_t b = 0; b < count; b++) {
        table_apply(&table, &store.blocks[order[b]], &store);
    }
    uint64_t calls = 0;
    for (uint32_t i = 1; i < sj_callgraph_node_count(table.graph); i++) {
        calls += sj_callgraph_node(table.graph, i).calls;
    }
    assert_int_equal(calls, trace.call_count);
    for (size_t c = 0; c < trace.call_count; c++) {
        assert_true(table.rows[c].entered && table.rows[c].ended);
        assert_row_is(&table.rows[c], &trace.calls[c]);
    }
    free(order);
    table_free(&table);
    block_store_free(&store);
    trace_free(&trace);
}

static void test_missing_frames_of_a_deep_stack_leave_the_graph_as_it_was(void **state)
{
    (void)state;
    const trace_shape shape = {.seed = 6,
                               .calls = 9000,
                               .functions = 2,
                               .max_depth = 6100,
                               .base_depth = 6000,
                               .tick_step = 3,
                               .tick_choices = 4};
    call_trace trace = trace_generate(&shape);
    block_store store = {0};
    block_store empty = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 4000, &store, &counters);
    const stored_block *last = &store.blocks[store.count - 1];
    assert_true(last->header.stack_frames > 0);
    call_table table = table_new(trace.call_count);
    sj_block block;
    sj_block_summary summary;
    const sj_slice bytes = {.data = last->data, .size = last->size};
    assert_int_equal(sj_block_decode(table.decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(sj_callgraph_apply(table.graph, &block, block_store_lookup, &empty, &summary),
                     SJ_ENOTFOUND);
    assert_int_equal(sj_callgraph_apply(table.graph, &block, NULL, NULL, &summary), SJ_ENOTFOUND);
    assert_int_equal(sj_callgraph_node_count(table.graph), 1);
    table_free(&table);
    block_store_free(&store);
    trace_free(&trace);
}

/* A small valid block, which spoil() damages. */
typedef struct small_block {
    sj_stack_frame frames[2];
    uint32_t functions[2];
    uint16_t symbols[4];
    uint64_t ticks[4];
    sj_block_ending endings[1];
    sj_gap gaps[1];
    sj_block block;
} small_block;

static void make_small(small_block *small)
{
    *small = (small_block){
        .frames = {{.call_index = 3, .start_ticks = 10, .child_ticks = 0, .function = 7},
                   {.call_index = 5, .start_ticks = 20, .child_ticks = 5, .function = 8}},
        .functions = {9, 7},
        .symbols = {1, 0, 0, 2},
        .ticks = {100, 110, 120, 130},
        .endings = {{.event = 2, .ending = SJ_ENDING_UNWOUND}},
        .gaps = {{.before_event = 1, .reason = SJ_GAP_WAITED}}};
    small->block = (sj_block){.header = {.version = 1,
                                         .kind = SJ_BLOCK_CALLS,
                                         .stream = 1,
                                         .event_count = 4,
                                         .call_count = 2,
                                         .first_event = 40,
                                         .first_call = 20,
                                         .first_ticks = 100,
                                         .last_ticks = 130,
                                         .clock_step = 1,
                                         .open_depth = 2,
                                         .end_depth = 2},
                              .frames = small->frames,
                              .frame_count = 2,
                              .functions = small->functions,
                              .function_count = 2,
                              .symbols16 = small->symbols,
                              .ticks = small->ticks,
                              .endings = small->endings,
                              .ending_count = 1,
                              .gaps = small->gaps,
                              .gap_count = 1};
}

static void test_a_block_is_summed_up(void **state)
{
    (void)state;
    small_block small;
    make_small(&small);
    sj_callgraph *graph;
    sj_block_summary summary;
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_callgraph_apply(graph, &small.block, NULL, NULL, &summary), SJ_OK);
    assert_int_equal(summary.ended_calls, 2);
    assert_int_equal(summary.max_duration_ticks, 100);
    assert_int_equal(summary.max_depth, 3);
    assert_int_equal(summary.late_count, 1);
    assert_int_equal(summary.late[0].call_index, 5);
    assert_int_equal(summary.late[0].end_ticks, 120);
    assert_int_equal(summary.late[0].self_ticks, 120 - 20 - 5 - 10);
    assert_int_equal(summary.late[0].ending, SJ_ENDING_UNWOUND);
    assert_int_equal(summary.late[0].flags, SJ_CALL_WAITED);
    size_t dirty;
    sj_callgraph_dirty(graph, &dirty);
    assert_int_equal(dirty, 4);
    sj_callgraph_clean(graph);
    sj_callgraph_dirty(graph, &dirty);
    assert_int_equal(dirty, 0);
    assert_true(sj_callgraph_node(graph, 4).recursive); /* function 7 below itself */
    assert_false(sj_callgraph_node(graph, 2).recursive);
    assert_int_equal(sj_callgraph_node(graph, 2).unwound, 1);
    assert_int_equal(sj_callgraph_node(graph, 2).untrusted, 1);
    sj_callgraph_free(graph);
}

static void spoil(small_block *small, int how)
{
    sj_block_header *header = &small->block.header;
    switch (how) {
    case 0:
        small->symbols[0] = 3;
        break; /* no such function */
    case 1:
        small->ticks[2] = 109;
        break; /* time goes back */
    case 2:
        header->end_depth = 3;
        break;
    case 3:
        header->open_depth = 1;
        small->block.frame_count = 1;
        header->end_depth = 1;
        small->symbols[0] = 0;
        small->symbols[1] = 0;
        break; /* a LEAVE without an open call */
    case 4:
        small->endings[0].event = 0;
        break; /* not a LEAVE */
    case 5:
        small->endings[0].event = 4;
        break;
    case 6:
        small->endings[0].ending = 9;
        break;
    case 7:
        small->gaps[0].before_event = 5;
        break;
    case 8:
        header->lost_calls = 1;
        break;
    case 9:
        small->frames[1].start_ticks = 101;
        break; /* after the block began */
    case 10:
        small->frames[1].child_ticks = 81;
        break; /* more than it lasted */
    case 11:
        small->frames[0].child_ticks = 11;
        break;
    case 12:
        small->frames[0].function = 0;
        break;
    case 13:
        small->functions[1] = 0;
        break;
    case 14:
        small->frames[1].call_index = 3;
        break;
    case 15:
        small->frames[0].flags = 1u << 9;
        break;
    case 16:
        header->gap_depth = 3;
        break;
    case 17:
        header->call_count = 3;
        break;
    case 18:
        small->block.frame_count = 1;
        break;
    case 19:
        header->kind = SJ_BLOCK_DEEP_FRAMES;
        break;
    case 20:
        small->block.symbols16 = NULL;
        break;
    case 21:
        small->ticks[0] = 99;
        break; /* before the header's time */
    case 22:
        small->gaps[0].start_ticks = 5;
        break; /* ends before it starts */
    default:
        fail();
        break;
    }
}

static void test_an_unsound_block_changes_nothing(void **state)
{
    (void)state;
    for (int how = 0; how <= 22; how++) {
        small_block small;
        make_small(&small);
        spoil(&small, how);
        sj_callgraph *graph;
        sj_call_reader *reader;
        sj_block_summary summary;
        const sj_call_rows *rows;
        assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
        assert_int_equal(sj_call_reader_new(&reader), SJ_OK);
        assert_int_equal(sj_callgraph_apply(graph, &small.block, NULL, NULL, &summary),
                         SJ_ECORRUPT);
        assert_int_equal(sj_call_reader_read(reader, &small.block, NULL, NULL, &rows), SJ_ECORRUPT);
        assert_int_equal(sj_callgraph_node_count(graph), 1);
        sj_call_reader_free(reader);
        sj_callgraph_free(graph);
    }
}

static void test_a_graph_continues_from_stored_nodes(void **state)
{
    (void)state;
    call_trace trace = trace_generate(&shapes[0]);
    oracle_tree truth = oracle_make(&trace, NULL, NULL);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 512, &store, &counters);
    call_table table = table_new(trace.call_count);
    for (size_t b = 0; b < store.count; b++) {
        if (b == store.count / 2) {
            sj_callgraph *again;
            assert_int_equal(sj_callgraph_new(&again), SJ_OK);
            for (uint32_t n = 1; n < sj_callgraph_node_count(table.graph); n++) {
                const sj_path_node node = sj_callgraph_node(table.graph, n);
                assert_int_equal(sj_callgraph_restore(again, &node), SJ_OK);
            }
            sj_callgraph_free(table.graph);
            table.graph = again;
            size_t dirty;
            sj_callgraph_dirty(again, &dirty);
            assert_int_equal(dirty, 0);
        }
        table_apply(&table, &store.blocks[b], &store);
    }
    assert_graph_is(table.graph, &truth);
    sj_path_node bad = sj_callgraph_node(table.graph, 1);
    assert_int_equal(sj_callgraph_restore(table.graph, &bad), SJ_ECORRUPT); /* a known node */
    bad.parent = sj_callgraph_node_count(table.graph);
    assert_int_equal(sj_callgraph_restore(table.graph, &bad), SJ_ECORRUPT);
    table_free(&table);
    oracle_free(&truth);
    block_store_free(&store);
    trace_free(&trace);
}

static void test_every_failing_allocation_is_reported(void **state)
{
    (void)state;
    call_trace trace = trace_generate(&shapes[1]);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, 4096, &store, &counters);
    sj_block_decoder *decoder;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    bool failed = true;
    uint64_t n = 0;
    for (; failed; n += 1 + n / 16) {
        sj_callgraph *graph = NULL;
        sj_call_reader *reader = NULL;
        sj_block block;
        sj_block_summary summary;
        const sj_call_rows *rows;
        const sj_slice bytes = {.data = store.blocks[0].data, .size = store.blocks[0].size};
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        fail_alloc_at(n);
        sj_status status = sj_callgraph_new(&graph);
        if (status == SJ_OK) {
            status = sj_callgraph_apply(graph, &block, NULL, NULL, &summary);
        }
        if (status == SJ_OK) {
            status = sj_call_reader_new(&reader);
        }
        if (status == SJ_OK) {
            status = sj_call_reader_read(reader, &block, NULL, NULL, &rows);
        }
        failed = fail_alloc_stop();
        assert_int_equal(status, failed ? SJ_ENOMEM : SJ_OK);
        sj_call_reader_free(reader);
        sj_callgraph_free(graph);
    }
    assert_true(n > 20);
    sj_block_decoder_free(decoder);
    block_store_free(&store);
    trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_summed_up),
        cmocka_unit_test(test_an_unsound_block_changes_nothing),
        cmocka_unit_test(test_blocks_in_any_order_give_the_calls_of_the_program),
        cmocka_unit_test(test_a_lost_block_loses_only_its_own_calls),
        cmocka_unit_test(test_a_refused_block_flags_the_calls_open_across_it),
        cmocka_unit_test(test_a_stack_deeper_than_a_key_frame_is_stored_once),
        cmocka_unit_test(test_missing_frames_of_a_deep_stack_leave_the_graph_as_it_was),
        cmocka_unit_test(test_a_graph_continues_from_stored_nodes),
        cmocka_unit_test(test_every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
