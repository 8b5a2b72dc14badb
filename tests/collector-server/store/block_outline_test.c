/* Outlines of blocks hold what they promise, whatever their size. Hostile outlines do no harm. */
#include "collector-server/store/block_outline.h"

#include "proto/callgraph/callgraph.h"
#include "tests/support/call_rows.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN };

typedef struct checked {
    size_t listed, open, shortened, refused;
} checked;

/* Compares the block's rows, as another reader gives them, with the outline. */
static void expect_rows(const sj_call_rows *rows, const sj_outline_call *calls, size_t count,
                        uint64_t floor_ticks, checked *seen)
{
    size_t at = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const bool is_open = rows->end_ticks[i] == SJ_CALL_NOT_ENDED;
        const uint64_t duration = is_open ? 0 : rows->end_ticks[i] - rows->start_ticks[i];
        if (!is_open && duration <= floor_ticks) {
            continue;
        }
        assert_true(at < count);
        const sj_outline_call *call = &calls[at++];
        assert_int_equal(call->call_index, rows->index[i]);
        assert_int_equal(call->start_ticks, rows->start_ticks[i]);
        assert_int_equal(call->function, rows->function[i]);
        assert_int_equal(call->depth, rows->depth[i]);
        assert_int_equal(call->ending, is_open ? SJ_NOT_ENDED : rows->ending[i]);
        assert_int_equal(call->duration_ticks, duration);
        if (!is_open) {
            assert_int_equal(call->self_ticks, duration - rows->child_ticks[i]);
            assert_int_equal(call->flags, rows->flags[i]);
        }
        seen->listed += !is_open;
        seen->open += is_open;
    }
    assert_int_equal(at, count);
}

static uint64_t longest_of(const sj_call_rows *rows, const sj_block_summary *summary,
                           const sj_block *block)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const uint64_t duration =
            rows->end_ticks[i] == SJ_CALL_NOT_ENDED ? 0 : rows->end_ticks[i] - rows->start_ticks[i];
        longest = duration > longest ? duration : longest;
    }
    for (size_t i = 0; i < summary->late_count; i++) {
        for (size_t k = 0; k < block->frame_count; k++) {
            if (block->frames[k].call_index == summary->late[i].call_index) {
                const uint64_t duration = summary->late[i].end_ticks - block->frames[k].start_ticks;
                longest = duration > longest ? duration : longest;
            }
        }
    }
    return longest;
}

/* Flips a bit of an encoded outline and cuts its end off, 20 times. It must read as some outline,
 * or be refused as corrupt. */
static void read_damaged(const sj_block_outline *encoded, const sj_block_header *header,
                         uint64_t *random)
{
    sj_outline_call calls[ALL];
    size_t count = 0;
    uint8_t *bytes = malloc(encoded->calls.size);
    for (unsigned round = 0; round < 20; round++) {
        memcpy(bytes, encoded->calls.data, encoded->calls.size);
        bytes[trace_random(random) % encoded->calls.size] ^= 1u << trace_random(random) % 8;
        const size_t size = trace_random(random) % (encoded->calls.size + 1);
        const sj_status status =
            sj_block_outline_read_calls((sj_slice){.data = bytes, .size = size}, header->first_call,
                                        header->first_ticks, 0, calls, &count);
        assert_true(status == SJ_OK || status == SJ_ECORRUPT || status == SJ_EVERSION);
        assert_true(count <= ALL);
    }
    free(bytes);
}

static void check_outline(const sj_block *block, const sj_call_rows *rows,
                          const sj_block_summary *summary, uint64_t *random, checked *seen)
{
    static sj_block_outline encoded;
    sj_outline_call calls[ALL];
    size_t count = 0;
    const sj_outline *outline = summary->outline;
    assert_int_equal(outline->has_all_open, rows->count == 0 || outline->call_count <= ALL);
    expect_rows(rows, outline->calls, outline->call_count, outline->floor_ticks, seen);
    assert_int_equal(longest_of(rows, summary, block), summary->max_duration_ticks);
    const uint64_t floor_ticks = outline->floor_ticks;
    const size_t budget = 20 + trace_random(random) % 500;
    if (sj_block_outline_encode(summary->outline, &block->header, budget, &encoded) != SJ_OK) {
        seen->refused++;
        return;
    }
    assert_true(encoded.calls.size <= budget && encoded.floor_ticks >= floor_ticks);
    seen->shortened += encoded.floor_ticks > floor_ticks;
    assert_int_equal(sj_block_outline_read_calls(encoded.calls, block->header.first_call,
                                                 block->header.first_ticks, encoded.floor_ticks,
                                                 calls, &count),
                     SJ_OK);
    expect_rows(rows, calls, count, encoded.floor_ticks, seen);
    read_damaged(&encoded, &block->header, random);
}

static void check_trace(const trace_shape *shape, uint32_t block_events, checked *seen)
{
    call_trace trace = trace_generate(shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, block_events, &store, &counters);
    sj_block_decoder *decoder;
    sj_callgraph *graph;
    sj_call_reader *reader;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_call_reader_new(&reader), SJ_OK);
    uint64_t random = shape->seed;
    for (size_t i = 0; i < store.count; i++) {
        sj_block block;
        sj_block_summary summary;
        const sj_call_rows *rows;
        const sj_slice bytes = {.data = store.blocks[i].data, .size = store.blocks[i].size};
        if (store.blocks[i].header.kind != SJ_BLOCK_CALLS) {
            continue;
        }
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        assert_int_equal(sj_callgraph_apply(graph, &block, block_store_lookup, &store, &summary),
                         SJ_OK);
        assert_int_equal(sj_call_reader_read(reader, &block, block_store_lookup, &store, &rows),
                         SJ_OK);
        check_outline(&block, rows, &summary, &random, seen);
    }
    sj_call_reader_free(reader);
    sj_callgraph_free(graph);
    sj_block_decoder_free(decoder);
    block_store_free(&store);
    trace_free(&trace);
}

static void outlines_have_all_calls_above_their_floor(void **state)
{
    (void)state;
    checked seen = {0};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        const trace_shape shape = {.seed = seed,
                                   .calls = 6000,
                                   .functions = 50,
                                   .max_depth = 40,
                                   .throw_per_million = seed % 2 == 0 ? 20000 : 0,
                                   .tick_step = seed % 3 == 0 ? 21 : 1,
                                   .tick_choices = seed % 4 == 0 ? 2 : 50,
                                   .realistic = seed % 5 == 0,
                                   .leave_all = seed % 2 == 0};
        check_trace(&shape, seed % 2 == 0 ? 200 : 1000, &seen);
    }
    assert_true(seen.listed > 1000 && seen.open > 100 && seen.shortened > 20 && seen.refused > 5);
}

static void small_blocks_and_blocks_of_frames_have_no_outline(void **state)
{
    (void)state;
    sj_block_header header = {.kind = SJ_BLOCK_CALLS, .call_count = SJ_BLOCK_OUTLINE_LEAST_CALLS};
    assert_int_equal(sj_block_outline_budget(&header, 20000), 484);
    assert_true(sj_block_outline_budget(&header, SJ_BLOCK_MAX_BYTES) <=
                SJ_BLOCK_OUTLINE_MOST_BYTES);
    assert_int_equal(sj_block_outline_budget(&header, 100), 0);
    header.call_count--;
    assert_int_equal(sj_block_outline_budget(&header, 20000), 0);
    header.call_count = SJ_BLOCK_OUTLINE_LEAST_CALLS;
    header.kind = SJ_BLOCK_DEEP_FRAMES;
    assert_int_equal(sj_block_outline_budget(&header, 20000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlines_have_all_calls_above_their_floor),
        cmocka_unit_test(small_blocks_and_blocks_of_frames_have_no_outline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
