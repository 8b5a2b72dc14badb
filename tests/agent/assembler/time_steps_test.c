/* Tests that times are rounded as by a division, and that every time in the blocks is a multiple of
 * the step. */
#include "agent/assembler/assembler.h"
#include "agent/assembler/time_steps.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TOP = 0x100000, LOW = 0xf0000 };

typedef struct told_blocks {
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store;
} told_blocks;

static void feed_at(told_blocks *told, sj_record_kind kind, uint32_t function, uint64_t stack,
                    uint64_t ticks)
{
    const sj_record record = trace_record(kind, function, stack, ticks);
    assert_int_equal(sj_assembler_feed(told->assembler, &record, 1, ticks), SJ_OK);
}

static void steps_round_down_as_division_does(void **state)
{
    static const uint32_t steps[] = {2, 3, 7, 16, 20, 21, 26, 260, 65537, 4000000, UINT32_MAX};
    uint64_t seed = 88172645463325252;
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        const sj_time_steps kept = sj_time_steps_of(steps[i]);
        for (int n = 0; n < 200000; n++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            const uint64_t any = seed >> (n % 64);
            const uint64_t multiple = any / steps[i] * steps[i];
            assert_int_equal(sj_time_steps_floor(&kept, any), multiple);
            assert_int_equal(sj_time_steps_floor(&kept, multiple), multiple);
            assert_int_equal(sj_time_steps_floor(&kept, multiple + steps[i] - 1),
                             (multiple + steps[i] - 1) / steps[i] * steps[i]);
        }
        assert_int_equal(sj_time_steps_floor(&kept, UINT64_MAX), UINT64_MAX / steps[i] * steps[i]);
    }
    const sj_time_steps all = sj_time_steps_of(0);
    assert_int_equal(sj_time_steps_floor(&all, UINT64_MAX), UINT64_MAX);
}

/* Every time of a thread is a multiple of the step: of ordinary records, of records that leave the
 * short loop (a throw, a gap, a foreign stack), and of its end. */
static void times_are_kept_in_the_requested_steps(void **state)
{
    (void)state;
    enum { STEP = 20, FOREIGN = 1 << 20 };
    told_blocks told = {0};
    assert_int_equal(sj_block_encoder_new(&told.encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = 1000003,
                                          .clock_step = 1,
                                          .kept_step = STEP,
                                          .encoder = told.encoder};
    const sj_assembler_sink sink = block_store_sink(&told.store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told.assembler), SJ_OK);
    feed_at(&told, SJ_RECORD_ENTER, 1, TOP - 100, 1000011);
    feed_at(&told, SJ_RECORD_ENTER, 2, TOP - 200, 1000019);
    feed_at(&told, SJ_RECORD_ENTER, 3, TOP - 300, 1000021);
    feed_at(&told, SJ_RECORD_LEAVE, 2, TOP - 200, 1000055);
    feed_at(&told, SJ_RECORD_ENTER, 4, TOP + FOREIGN, 1000077);
    feed_at(&told, SJ_RECORD_LEAVE, 4, TOP + FOREIGN, 1000099);
    assert_int_equal(sj_assembler_end(told.assembler, 1000139, true, 0), SJ_OK);
    assert_true(told.store.count >= 2);
    for (size_t i = 0; i < told.store.count; i++) {
        const sj_block_header *header = &told.store.blocks[i].header;
        assert_int_equal(header->clock_step, STEP);
        assert_int_equal(header->first_ticks % STEP, 0);
        assert_int_equal(header->last_ticks % STEP, 0);
    }
    assert_int_equal(told.store.blocks[0].header.first_ticks, 1000000);
    sj_assembler_free(told.assembler);
    sj_block_encoder_free(told.encoder);
    block_store_free(&told.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_round_down_as_division_does),
        cmocka_unit_test(times_are_kept_in_the_requested_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
