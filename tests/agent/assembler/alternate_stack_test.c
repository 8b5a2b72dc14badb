/* Tests signal handlers on an alternate stack that is a local array of the outermost call. */
#include "agent/assembler/assembler.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TOP = 0x100000, LOW = 0xf0000, START = 1000, STEP = 10, MOST = 32 };
enum { MAIN = TOP - 100, ARRAY_HIGH = TOP - 200, HANDLER = TOP - 300, ARRAY_LOW = TOP - 800 };
enum { WORK = TOP - 900, DEEP = TOP - 1000 };

/* The two note records that announce the range of the alternate stack. */
#define BEGINS                                                                                     \
    {SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW, ARRAY_LOW},                                            \
    {                                                                                              \
        SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_HIGH, ARRAY_HIGH                                         \
    }

typedef struct step {
    sj_record_kind kind;
    uint32_t function;
    uint64_t stack;
} step;

/* Feeds the records of a thread, `together` of them at a time. Returns the counters. */
static sj_assembler_counters feed(const step *steps, size_t count, size_t together)
{
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    sj_assembler_counters counters;
    sj_record records[MOST];
    block_store store = {0};
    const sj_assembler_sink sink = block_store_sink(&store);
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    const sj_assembler_options options = {
        .stack_low = LOW, .stack_high = TOP, .start_ticks = START, .encoder = encoder};
    assert_int_equal(sj_assembler_new(&options, &sink, &assembler), SJ_OK);
    for (size_t i = 0; i < count; i++) {
        records[i] =
            trace_record(steps[i].kind, steps[i].function, steps[i].stack, START + STEP * i);
    }
    for (size_t i = 0; i < count; i += together) {
        const size_t part = count - i < together ? count - i : together;
        assert_int_equal(sj_assembler_feed(assembler, records + i, part, START + STEP * count),
                         SJ_OK);
    }
    assert_int_equal(sj_assembler_end(assembler, START + STEP * count, false, 0), SJ_OK);
    sj_assembler_get_counters(assembler, &counters);
    assert_null(assembler_check(&counters, &store));
    sj_assembler_free(assembler);
    block_store_free(&store);
    sj_block_encoder_free(encoder);
    return counters;
}

static void check(const step *steps, size_t count, uint64_t returned, uint64_t unwound,
                  uint64_t streams)
{
    for (size_t together = 1; together <= count; together++) {
        const sj_assembler_counters counters = feed(steps, count, together);
        assert_int_equal(counters.returned, returned);
        assert_int_equal(counters.unwound, unwound);
        assert_int_equal(counters.streams, streams);
        assert_int_equal(counters.orphan_exits, 0);
        assert_int_equal(counters.bad_records, 0);
    }
}

static void a_handler_that_returns_ends_no_call(void **state)
{
    static const step steps[] = {{SJ_RECORD_ENTER, 1, MAIN},
                                 {SJ_RECORD_ENTER, 2, WORK},
                                 BEGINS,
                                 {SJ_RECORD_ENTER, 50, HANDLER},
                                 {SJ_RECORD_LEAVE, 50, HANDLER},
                                 {SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW, 0},
                                 {SJ_RECORD_ENTER, 3, DEEP},
                                 {SJ_RECORD_LEAVE, 3, DEEP},
                                 {SJ_RECORD_LEAVE, 2, WORK},
                                 {SJ_RECORD_LEAVE, 1, MAIN}};
    (void)state;
    check(steps, sizeof(steps) / sizeof(steps[0]), 4, 0, 2);
}

static void a_handler_is_no_callee_of_the_call_that_holds_the_array(void **state)
{
    static const step steps[] = {{SJ_RECORD_ENTER, 1, MAIN},
                                 BEGINS,
                                 {SJ_RECORD_ENTER, 50, HANDLER},
                                 {SJ_RECORD_LEAVE, 50, HANDLER},
                                 {SJ_RECORD_LEAVE, 1, MAIN}};
    (void)state;
    check(steps, sizeof(steps) / sizeof(steps[0]), 2, 0, 2);
}

/* Call 4 has the stack address that the handler had inside the array. */
static void a_handler_that_is_left_ends_with_the_next_record_outside(void **state)
{
    static const step steps[] = {
        {SJ_RECORD_ENTER, 1, MAIN},     {SJ_RECORD_ENTER, 2, WORK}, BEGINS,
        {SJ_RECORD_ENTER, 50, HANDLER}, {SJ_RECORD_ENTER, 3, DEEP}, {SJ_RECORD_LEAVE, 3, DEEP},
        {SJ_RECORD_LEAVE, 2, WORK},     {SJ_RECORD_LEAVE, 1, MAIN}, {SJ_RECORD_ENTER, 4, HANDLER},
        {SJ_RECORD_ENTER, 2, WORK},     {SJ_RECORD_LEAVE, 2, WORK}, {SJ_RECORD_LEAVE, 4, HANDLER}};
    (void)state;
    check(steps, sizeof(steps) / sizeof(steps[0]), 5, 1, 2);
}

static void an_incomplete_stack_range_is_ignored(void **state)
{
    static const step steps[] = {{SJ_RECORD_ENTER, 1, MAIN},
                                 {SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_HIGH, ARRAY_HIGH},
                                 {SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW, ARRAY_LOW},
                                 {SJ_RECORD_ENTER, 2, HANDLER},
                                 {SJ_RECORD_LEAVE, 2, HANDLER},
                                 {SJ_RECORD_LEAVE, 1, MAIN}};
    (void)state;
    check(steps, sizeof(steps) / sizeof(steps[0]), 2, 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_that_returns_ends_no_call),
        cmocka_unit_test(a_handler_that_is_left_ends_with_the_next_record_outside),
        cmocka_unit_test(a_handler_is_no_callee_of_the_call_that_holds_the_array),
        cmocka_unit_test(an_incomplete_stack_range_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
