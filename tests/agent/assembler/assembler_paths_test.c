/* The assembler handles ordinary records in a short loop and all other records one by one. If the
 * bounds of a thread's stack are unknown, it never uses the short loop. So the same records must
 * become the same blocks, byte for byte, with and without known bounds. */
#include "agent/assembler/assembler.h"
#include "tests/support/assembler_check.h"
#include "tests/support/unusual_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDS = 40000, MOST_FED = 700 };

static sj_assembler *open_assembler(bool bounds, uint64_t start_ticks, uint32_t block_events,
                                    sj_block_encoder *encoder, block_store *store)
{
    const sj_assembler_options options = {.stack_low = bounds ? UNUSUAL_LOW : 0,
                                          .stack_high = bounds ? UNUSUAL_TOP : 0,
                                          .start_ticks = start_ticks,
                                          .block_events = block_events,
                                          .encoder = encoder};
    const sj_assembler_sink sink = block_store_sink(store);
    sj_assembler *assembler;
    assert_int_equal(sj_assembler_new(&options, &sink, &assembler), SJ_OK);
    return assembler;
}

static void assert_same(const block_store *left, const block_store *right)
{
    assert_int_equal(left->count, right->count);
    for (size_t i = 0; i < left->count; i++) {
        assert_int_equal(left->blocks[i].size, right->blocks[i].size);
        assert_memory_equal(left->blocks[i].data, right->blocks[i].data, left->blocks[i].size);
    }
}

static void run_both(unusual_program *made, sj_assembler *const assemblers[2])
{
    sj_record *records = calloc(MOST_FED, sizeof(*records));
    assert_non_null(records);
    /* The highest address comes first, so that the assembler without bounds learns the top at
     * once. */
    records[0] = unusual_program_first(made);
    size_t count = 1;
    for (size_t fed = 0; fed < RECORDS;
         fed += count, count = 1 + unusual_program_below(made, MOST_FED)) {
        for (size_t i = fed == 0; i < count; i++) {
            records[i] = unusual_program_next(made);
        }
        for (int side = 0; side < 2; side++) {
            assert_int_equal(sj_assembler_feed(assemblers[side], records, count, made->ticks + 500),
                             SJ_OK);
            if (count % 16 == 0) {
                assert_int_equal(sj_assembler_flush(assemblers[side], made->ticks + 500), SJ_OK);
            }
        }
    }
    free(records);
    for (int side = 0; side < 2; side++) {
        assert_int_equal(sj_assembler_end(assemblers[side], made->ticks + 600, false, 0), SJ_OK);
    }
}

typedef struct seen {
    uint64_t truncated;
    uint64_t refused_blocks;
    uint64_t stack_blocks;
} seen;

static uint64_t count_stack_blocks(const block_store *store)
{
    uint64_t count = 0;
    for (size_t i = 0; i < store->count; i++) {
        count += store->blocks[i].header.kind == SJ_BLOCK_DEEP_FRAMES;
    }
    return count;
}

static void compare(uint64_t seed, uint32_t block_events, bool deep, seen *sums)
{
    unusual_program *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    made->random = seed;
    /* For a quarter of the seeds, the times overflow 48 bits. */
    const uint64_t start_ticks = seed % 4 == 0 ? (UINT64_C(7) << 48) - 100000 : 1000;
    made->ticks = start_ticks + 4000;
    made->deep = deep;
    sj_block_encoder *encoder;
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    block_store stores[2] = {{.random = seed}, {.random = seed}};
    stores[0].refuse_per_million = stores[1].refuse_per_million = seed % 3 == 0 ? 100000 : 0;
    sj_assembler *const assemblers[2] = {
        open_assembler(true, start_ticks, block_events, encoder, &stores[0]),
        open_assembler(false, start_ticks, block_events, encoder, &stores[1])};
    run_both(made, assemblers);
    assert_same(&stores[0], &stores[1]);
    for (int side = 0; side < 2; side++) {
        sj_assembler_counters counters;
        sj_assembler_get_counters(assemblers[side], &counters);
        assert_null(assembler_check(&counters, &stores[side]));
        assert_true(counters.returned > RECORDS / 8);
        assert_true(counters.unwound > 0);
        sums->truncated += counters.truncated;
        sums->refused_blocks += counters.refused_blocks;
        sums->stack_blocks += count_stack_blocks(&stores[side]);
        assert_int_equal(stores[side].streams, 1);
        sj_assembler_free(assemblers[side]);
        block_store_free(&stores[side]);
    }
    sj_block_encoder_free(encoder);
    free(made);
}

static void test_fast_and_slow_path_make_the_same_blocks(void **state)
{
    (void)state;
    seen sums = {0};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        compare(seed, seed % 2 != 0 ? 512 : 5000, false, &sums);
    }
    assert_true(sums.truncated > 0 && sums.refused_blocks > 0);
}

static void test_both_paths_make_the_same_blocks_of_stacks_stored_apart(void **state)
{
    (void)state;
    seen sums = {0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        compare(seed, 900, true, &sums);
    }
    assert_true(sums.truncated > 0 && sums.stack_blocks > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_and_slow_path_make_the_same_blocks),
        cmocka_unit_test(test_both_paths_make_the_same_blocks_of_stacks_stored_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
