/* Compares depths that are measured eight symbols at a time with those of a plain walk, for every
 * pattern and length. */
#include "proto/block/block.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 300, PIECE = 16 };

static sj_block_depths walk(const uint16_t *symbols, size_t count, uint32_t open)
{
    sj_block_depths depths = {.lowest = open, .end = open};
    for (size_t i = 0; i < count; i++) {
        depths.end += symbols[i] != 0 ? 1 : -1;
        depths.lowest = depths.end < depths.lowest ? depths.end : depths.lowest;
        if (symbols[i] != 0 && depths.end > depths.entered) {
            depths.entered = depths.end;
        }
    }
    return depths;
}

static void assert_same(const uint16_t *symbols, size_t count, uint32_t open)
{
    uint32_t wide[MOST];
    for (size_t i = 0; i < count; i++) {
        wide[i] = symbols[i];
    }
    sj_block block = {.header = {.event_count = (uint32_t)count, .open_depth = open},
                      .symbols16 = symbols};
    const sj_block_depths expected = walk(symbols, count, open);
    const sj_block_depths narrow_depths = sj_block_measure_depths(&block);
    block.symbols16 = NULL;
    block.symbols32 = wide;
    const sj_block_depths wide_depths = sj_block_measure_depths(&block);
    assert_memory_equal(&narrow_depths, &expected, sizeof(expected));
    assert_memory_equal(&wide_depths, &expected, sizeof(expected));
}

static void test_every_pattern_of_eight_symbols_is_measured(void **state)
{
    (void)state;
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        uint16_t symbols[8];
        for (unsigned k = 0; k < 8; k++) {
            symbols[k] = (pattern >> k & 1) != 0 ? (uint16_t)(k % 2 != 0 ? 0x8000 : 1) : 0;
        }
        for (size_t count = 0; count <= 8; count++) {
            assert_same(symbols, count, 0);
            assert_same(symbols, count, 3);
        }
    }
}

/* After the first ENTER, pieces of 16 symbols are measured eight at a time. */
static void test_every_pattern_within_a_piece_is_measured(void **state)
{
    (void)state;
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        for (unsigned before = 0; before < 3; before++) {
            uint16_t symbols[MOST] = {0};
            symbols[before] = 7;
            for (unsigned k = 0; k < 8; k++) {
                symbols[before + 1 + k] = (pattern >> k & 1) != 0 ? (uint16_t)(1 + k * 0x1fff) : 0;
                symbols[before + 1 + PIECE - 8 + k] = symbols[before + 1 + k];
            }
            for (size_t count = PIECE; count <= PIECE + before + 9; count++) {
                assert_same(symbols, count, 0);
                assert_same(symbols, count, 1000);
            }
        }
    }
}

static void test_random_symbols_are_measured(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252U;
    for (int round = 0; round < 2000; round++) {
        uint16_t symbols[MOST];
        for (size_t i = 0; i < MOST; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            symbols[i] = (random >> 40 & 1) != 0 ? (uint16_t)(random >> 20) : 0;
        }
        assert_same(symbols, (size_t)(random % MOST), (uint32_t)(random >> 50));
    }
}

static uint16_t many[40000];

/* Fills `many` with waves: ENTERs up to the depth `deepest`, then LEAVEs down to 0, repeatedly. */
static void fill_waves(int deepest)
{
    int depth = 0;
    int rising = 1;
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        many[i] = (uint16_t)rising;
        depth += rising != 0 ? 1 : -1;
        rising = depth == 0 || (rising != 0 && depth < deepest);
    }
}

static void test_steps_begin_at_multiples_of_the_step_size(void **state)
{
    (void)state;
    const size_t every = (size_t)1 << SJ_BLOCK_STEP_BITS;
    const size_t counts[] = {0, 1, every - 5, every - 4, every, 2 * every, 39999};
    fill_waves(300);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const sj_block block = {.header = {.event_count = (uint32_t)counts[i],
                                           .first_event = 3 * every + 5,
                                           .open_depth = 2},
                                .symbols16 = many};
        const sj_block_depths expected = walk(many, counts[i], 2);
        sj_block_depths steps[SJ_BLOCK_MAX_STEPS];
        size_t step_count = 99;
        const sj_block_depths whole = sj_block_measure_steps(&block, steps, &step_count);
        assert_memory_equal(&whole, &expected, sizeof(whole));
        size_t from = 0;
        uint32_t open = 2;
        for (size_t step = 0; step < step_count; step++) {
            const size_t beyond = (step + 1) * every - 5;
            const size_t to = beyond < counts[i] ? beyond : counts[i];
            const sj_block_depths part = walk(many + from, to - from, open);
            assert_memory_equal(&steps[step], &part, sizeof(part));
            open = (uint32_t)part.end;
            from = to;
        }
        assert_int_equal(from, counts[i]);
    }
}

/* Within one or several pieces, depths are computed in 16 bits. */
static void test_depths_beyond_sixteen_bits_are_measured(void **state)
{
    (void)state;
    const size_t count = sizeof(many) / sizeof(many[0]);
    sj_block block = {.header = {.event_count = (uint32_t)count, .open_depth = 50000},
                      .symbols16 = many};
    for (uint16_t symbol = 0; symbol < 2; symbol++) {
        for (size_t i = 0; i < count; i++) {
            many[i] = i == 0 ? 1 : symbol;
        }
        const sj_block_depths expected = walk(many, count, block.header.open_depth);
        const sj_block_depths depths = sj_block_measure_depths(&block);
        assert_memory_equal(&depths, &expected, sizeof(expected));
    }
}

static void test_measuring_ends_at_a_leave_without_a_call(void **state)
{
    (void)state;
    fill_waves(300);
    many[0] = 0;
    const sj_block block = {.header = {.event_count = 39999}, .symbols16 = many};
    sj_block_depths steps[SJ_BLOCK_MAX_STEPS];
    size_t step_count = 0;
    const sj_block_depths whole = sj_block_measure_steps(&block, steps, &step_count);
    assert_int_equal(step_count, 1);
    assert_true(whole.lowest < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern_of_eight_symbols_is_measured),
        cmocka_unit_test(test_every_pattern_within_a_piece_is_measured),
        cmocka_unit_test(test_random_symbols_are_measured),
        cmocka_unit_test(test_steps_begin_at_multiples_of_the_step_size),
        cmocka_unit_test(test_depths_beyond_sixteen_bits_are_measured),
        cmocka_unit_test(test_measuring_ends_at_a_leave_without_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
