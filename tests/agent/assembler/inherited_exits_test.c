/* Tests the exits of calls that the parent entered before it forked the process. */
#include "agent/assembler/assembler.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TOP = 0x100000, LOW = 0xf0000, START = 1000 };

typedef struct step {
    sj_record_kind kind;
    uint32_t function;
    uint64_t stack;
} step;

/* Feeds the records of a thread, then ends the thread. Returns the counters. */
static sj_assembler_counters feed(bool is_forked, uint64_t lost, const step *steps, size_t count)
{
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    sj_assembler_counters counters;
    block_store store = {0};
    const sj_assembler_sink sink = block_store_sink(&store);
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = START,
                                          .is_forked = is_forked,
                                          .encoder = encoder};
    assert_int_equal(sj_assembler_new(&options, &sink, &assembler), SJ_OK);
    if (lost != 0) {
        assert_int_equal(sj_assembler_add_loss(assembler, SJ_GAP_RING_FULL, lost, lost, START),
                         SJ_OK);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t ticks = START + 10 * i;
        const sj_record record =
            trace_record(steps[i].kind, steps[i].function, steps[i].stack, ticks);
        assert_int_equal(sj_assembler_feed(assembler, &record, 1, ticks), SJ_OK);
    }
    assert_int_equal(sj_assembler_end(assembler, START + 10 * count, false, 0), SJ_OK);
    sj_assembler_get_counters(assembler, &counters);
    assert_null(assembler_check(&counters, &store));
    sj_assembler_free(assembler);
    block_store_free(&store);
    sj_block_encoder_free(encoder);
    return counters;
}

static const step returns[] = {{SJ_RECORD_ENTER, 1, TOP - 400},
                               {SJ_RECORD_LEAVE, 1, TOP - 400},
                               {SJ_RECORD_LEAVE, 5, TOP - 300},
                               {SJ_RECORD_LEAVE, 6, TOP - 200}};
enum { RETURNS = sizeof(returns) / sizeof(returns[0]) };

static void exits_of_calls_that_the_parent_entered_are_inherited(void **state)
{
    (void)state;
    const sj_assembler_counters counters = feed(true, 0, returns, RETURNS);
    assert_int_equal(counters.inherited_exits, 2);
    assert_int_equal(counters.orphan_exits, 0);
}

static void exits_without_an_entry_and_a_fork_are_orphans(void **state)
{
    (void)state;
    const sj_assembler_counters counters = feed(false, 0, returns, RETURNS);
    assert_int_equal(counters.inherited_exits, 0);
    assert_int_equal(counters.orphan_exits, 2);
}

static void exits_after_a_loss_are_orphans(void **state)
{
    (void)state;
    const sj_assembler_counters counters = feed(true, 1, returns, RETURNS);
    assert_int_equal(counters.inherited_exits, 0);
    assert_int_equal(counters.orphan_exits, 2);
}

static void exits_inside_of_recorded_calls_are_orphans(void **state)
{
    static const step steps[] = {{SJ_RECORD_LEAVE, 5, TOP - 300},
                                 {SJ_RECORD_ENTER, 1, TOP - 300},
                                 {SJ_RECORD_LEAVE, 8, TOP - 350},
                                 {SJ_RECORD_LEAVE, 1, TOP - 300},
                                 {SJ_RECORD_LEAVE, 9, TOP - 400}};
    (void)state;
    const sj_assembler_counters counters = feed(true, 0, steps, sizeof(steps) / sizeof(steps[0]));
    assert_int_equal(counters.inherited_exits, 1);
    assert_int_equal(counters.orphan_exits, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exits_of_calls_that_the_parent_entered_are_inherited),
        cmocka_unit_test(exits_without_an_entry_and_a_fork_are_orphans),
        cmocka_unit_test(exits_after_a_loss_are_orphans),
        cmocka_unit_test(exits_inside_of_recorded_calls_are_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
