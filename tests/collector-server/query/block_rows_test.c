/* The collector makes the rows of a block in two ways: for queries over columns, and call by call
 * in the reader beside the call graph. Both must give the same rows for every block of a program
 * with gaps, waits, throws and stacks stored apart. */
#include "collector-server/query/block_rows.h"

#include "tests/support/call_rows.h"
#include "tests/support/unusual_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDS = 30000 };

/* Counts the cases that the compared blocks contained. The test fails if a case never occurred. */
typedef struct seen {
    uint64_t rows;
    uint64_t flagged;
    uint64_t unwound;
    uint64_t open;
    uint64_t over_stored_frames; /* blocks */
    uint64_t with_gaps;
} seen;

static void make_blocks(uint64_t seed, bool deep, block_store *store)
{
    unusual_program *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    *made = (unusual_program){.random = seed, .ticks = 5000, .deep = deep};
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = UNUSUAL_LOW,
                                          .stack_high = UNUSUAL_TOP,
                                          .start_ticks = 1000,
                                          .block_events = 900,
                                          .encoder = encoder};
    const sj_assembler_sink sink = block_store_sink(store);
    assert_int_equal(sj_assembler_new(&options, &sink, &assembler), SJ_OK);
    for (int i = 0; i < RECORDS; i++) {
        const sj_record record = i == 0 ? unusual_program_first(made) : unusual_program_next(made);
        assert_int_equal(sj_assembler_feed(assembler, &record, 1, made->ticks + 500), SJ_OK);
    }
    assert_int_equal(sj_assembler_end(assembler, made->ticks + 600, false, 0), SJ_OK);
    sj_assembler_free(assembler);
    sj_block_encoder_free(encoder);
    free(made);
}

static void assert_same_parent(const sj_block *block, const sj_block_rows *left,
                               const sj_call_rows *right, size_t row)
{
    if (left->depths[row] == 0) {
        assert_int_equal(right->parent[row], SJ_CALL_NO_PARENT);
    } else if (left->parents[row] != SJ_ROW_NO_PARENT) {
        assert_int_equal(left->indexes[left->parents[row]], right->parent[row]);
    } else if (left->depths[row] > block->header.stack_frames) {
        const uint32_t frame = left->depths[row] - 1 - block->header.stack_frames;
        assert_int_equal(block->frames[frame].call_index, right->parent[row]);
    }
}

static void assert_same_rows(const sj_block *block, const sj_block_rows *left,
                             const sj_call_rows *right, seen *sums)
{
    assert_int_equal(left->count, right->count);
    for (size_t row = 0; row < left->count; row++) {
        assert_int_equal(left->indexes[row], right->index[row]);
        assert_int_equal(block->functions[left->symbols[row]], right->function[row]);
        assert_int_equal(left->depths[row], right->depth[row]);
        assert_int_equal(left->starts[row], right->start_ticks[row]);
        assert_int_equal(left->endings[row], right->ending[row]);
        const bool is_untimed =
            block->untimed != NULL && block->untimed[left->symbols[row] + 1] != 0;
        assert_int_equal(left->flags[row], right->flags[row] | (is_untimed ? SJ_CALL_UNTIMED : 0));
        assert_same_parent(block, left, right, row);
        if (right->end_ticks[row] != SJ_CALL_NOT_ENDED) {
            assert_int_equal(left->ends[row], right->end_ticks[row]);
            assert_int_equal(left->selves[row], right->end_ticks[row] - right->start_ticks[row] -
                                                    right->child_ticks[row]);
        }
        sums->flagged += left->flags[row] != 0;
        sums->unwound += left->endings[row] == SJ_ENDING_UNWOUND;
        sums->open += left->endings[row] == SJ_ENDING_OPEN;
    }
    sums->rows += left->count;
}

static void compare_blocks(uint64_t seed, bool deep, seen *sums)
{
    block_store store = {0};
    sj_block_decoder *decoder;
    sj_call_reader *reader;
    sj_block_rows rows = {0};
    make_blocks(seed, deep, &store);
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_call_reader_new(&reader), SJ_OK);
    for (size_t i = 0; i < store.count; i++) {
        const sj_slice bytes = {.data = store.blocks[i].data, .size = store.blocks[i].size};
        sj_block block;
        const sj_call_rows *expected;
        if (store.blocks[i].header.kind != SJ_BLOCK_CALLS) {
            continue;
        }
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL | SJ_WANT_TAIL_CALLS, &block),
                         SJ_OK);
        assert_int_equal(sj_call_reader_read(reader, &block, block_store_lookup, &store, &expected),
                         SJ_OK);
        assert_int_equal(sj_block_rows_build(&rows, &block, true), SJ_OK);
        assert_same_rows(&block, &rows, expected, sums);
        sums->over_stored_frames += block.header.stack_frames > 0;
        sums->with_gaps += block.gap_count > 0;
    }
    sj_block_rows_deinit(&rows);
    sj_call_reader_free(reader);
    sj_block_decoder_free(decoder);
    block_store_free(&store);
}

static void test_both_readers_give_the_same_rows(void **state)
{
    (void)state;
    seen sums = {0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        compare_blocks(seed, seed % 2 == 0, &sums);
    }
    assert_true(sums.rows > 8 * RECORDS / 3);
    assert_true(sums.flagged > 0 && sums.unwound > 0 && sums.open > 0);
    assert_true(sums.over_stored_frames > 0 && sums.with_gaps > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_readers_give_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
