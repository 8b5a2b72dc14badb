/* Tests managed records, alone and among native ones. Each test feeds a short sequence of records
 * and checks the calls in the blocks. A random program is fed at once and one record at a time. */
#include "agent/assembler/assembler.h"
#include "proto/block/call_trust.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LOW = 0xf0000, TOP = 0x100000, OTHER = 0x800000, TEXT_BYTES = 4096, STEPS = 20000 };
enum {
    CALL = SJ_MANAGED_CALL,
    THROWN = SJ_MANAGED_THROWN,
    HIT = SJ_MANAGED_INTERRUPTED,
    PASSED = SJ_MANAGED_PASSED
};

typedef struct step {
    char kind; /* + enters, - leaves, n notes lost calls */
    uint32_t function;
    uint64_t stack;
} step;

typedef struct story {
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store;
    uint64_t ticks;
} story;

static void open_story(story *told, uint32_t block_events)
{
    *told = (story){.ticks = 1000};
    assert_int_equal(sj_block_encoder_new(&told->encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = told->ticks,
                                          .block_events = block_events,
                                          .encoder = told->encoder};
    const sj_assembler_sink sink = block_store_sink(&told->store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told->assembler), SJ_OK);
}

static void finish(story *told)
{
    sj_assembler_counters counters;
    assert_int_equal(sj_assembler_end(told->assembler, told->ticks + 10, true, 0), SJ_OK);
    sj_assembler_get_counters(told->assembler, &counters);
    assert_null(assembler_check(&counters, &told->store));
}

static void close_story(story *told)
{
    sj_assembler_free(told->assembler);
    sj_block_encoder_free(told->encoder);
    block_store_free(&told->store);
}

static sj_record record_of(const step *made, uint64_t ticks)
{
    const sj_record_kind kind = made->kind == '+'   ? SJ_RECORD_ENTER
                                : made->kind == '-' ? SJ_RECORD_LEAVE
                                                    : SJ_RECORD_NOTE;
    return trace_record(kind, made->function, made->stack, ticks);
}

/* Describes the blocks of a stream: +function enters, - returns, ~ unwound, ! truncated. */
static void tell(const story *told, uint32_t stream, char text[TEXT_BYTES])
{
    size_t used = 0;
    sj_block_decoder *decoder;
    text[0] = '\0';
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    for (size_t i = 0; i < told->store.count; i++) {
        const stored_block *stored = &told->store.blocks[i];
        const sj_slice bytes = {.data = stored->data, .size = stored->size};
        sj_block block;
        if (stored->header.stream != stream) {
            continue;
        }
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        size_t ending = 0;
        for (uint32_t event = 0; event < block.header.event_count; event++) {
            const uint32_t symbol = block.symbols16[event];
            const bool is_odd = ending < block.ending_count && block.endings[ending].event == event;
            const char *how = "-";
            if (symbol == 0 && is_odd) {
                how = block.endings[ending++].ending == SJ_ENDING_UNWOUND ? "~" : "!";
            }
            used += (size_t)(symbol != 0 ? snprintf(text + used, TEXT_BYTES - used, "+%u ",
                                                    block.functions[symbol - 1])
                                         : snprintf(text + used, TEXT_BYTES - used, "%s ", how));
        }
    }
    sj_block_decoder_free(decoder);
}

static void expect_counted(const step *steps, size_t count, const char *expected, uint64_t orphans)
{
    for (int at_once = 0; at_once < 2; at_once++) {
        story told;
        char text[TEXT_BYTES];
        sj_record records[64];
        sj_assembler_counters counters;
        assert_true(count <= 64);
        open_story(&told, 0);
        for (size_t i = 0; i < count; i++) {
            records[i] = record_of(&steps[i], told.ticks += 10);
            if (!at_once) {
                assert_int_equal(sj_assembler_feed(told.assembler, &records[i], 1, told.ticks),
                                 SJ_OK);
            }
        }
        if (at_once) {
            assert_int_equal(sj_assembler_feed(told.assembler, records, count, told.ticks), SJ_OK);
        }
        finish(&told);
        tell(&told, 1, text);
        assert_string_equal(text, expected);
        sj_assembler_get_counters(told.assembler, &counters);
        assert_int_equal(counters.orphan_exits, orphans);
        close_story(&told);
    }
}

#define EXPECT(steps, expected)                                                                    \
    expect_counted((steps), sizeof(steps) / sizeof((steps)[0]), (expected), 0)
#define EXPECT_ORPHANS(steps, expected, orphans)                                                   \
    expect_counted((steps), sizeof(steps) / sizeof((steps)[0]), (expected), (orphans))

static void test_calls_nest_by_order(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL}, {'+', 2, CALL}, {'+', 2, CALL}, {'-', 2, CALL},
                                 {'-', 2, CALL}, {'+', 3, CALL}, {'-', 3, CALL}, {'-', 1, CALL}};
    EXPECT(steps, "+1 +2 +2 - - +3 - - ");
}

static void test_an_exception_leaves_call_by_call(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL},   {'+', 2, CALL}, {'+', 3, CALL}, {'-', 3, THROWN},
                                 {'-', 2, THROWN}, {'+', 4, CALL}, {'-', 4, CALL}, {'-', 1, CALL}};
    EXPECT(steps, "+1 +2 +3 ~ ~ +4 - - ");
}

/* After a return or an entry, the next exit by exception belongs to another exception. */
static void exits_by_one_exception_are_counted(void **state)
{
    (void)state;
    static const step steps[] = {
        {'+', 1, CALL},   {'+', 2, CALL},   {'+', 3, CALL},  {'+', 4, CALL},    {'+', 5, CALL},
        {'-', 5, THROWN}, {'-', 4, THROWN}, {'+', 6, CALL},  {'-', 6, THROWN},  {'-', 3, CALL},
        {'-', 2, THROWN}, {'+', 7, CALL},   {'+', 8, CALL},  {'+', 9, CALL},    {'-', 9, THROWN},
        {'-', 8, THROWN}, {'-', 7, THROWN}, {'+', 10, CALL}, {'-', 10, THROWN}, {'-', 1, THROWN}};
    const size_t count = sizeof(steps) / sizeof(steps[0]);
    static const uint64_t longest[] = {0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3};
    story told;
    sj_assembler_counters counters;
    open_story(&told, 0);
    for (size_t i = 0; i < count; i++) {
        const sj_record record = record_of(&steps[i], told.ticks += 10);
        assert_int_equal(sj_assembler_feed(told.assembler, &record, 1, told.ticks), SJ_OK);
        sj_assembler_get_counters(told.assembler, &counters);
        assert_int_equal(counters.longest_throw, longest[i]);
    }
    finish(&told);
    close_story(&told);
}

static void test_native_calls_inside_managed_ones_and_the_reverse_make_one_tree(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 10, TOP - 96},  {'+', 1, CALL},       {'+', 11, TOP - 480},
                                 {'+', 2, CALL},       {'+', 12, TOP - 960}, {'-', 12, TOP - 960},
                                 {'-', 2, CALL},       {'-', 11, TOP - 480}, {'+', 13, TOP - 400},
                                 {'-', 13, TOP - 400}, {'-', 1, CALL},       {'-', 10, TOP - 96}};
    EXPECT(steps, "+10 +1 +11 +2 +12 - - - +13 - - - ");
}

static void test_a_native_entry_ends_managed_calls_only_with_the_native_one_below(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL},       {'+', 11, TOP - 480}, {'+', 2, CALL},
                                 {'+', 12, TOP - 400}, {'-', 12, TOP - 400}, {'-', 1, CALL}};
    EXPECT(steps, "+1 +11 +2 ~ ~ +12 - - "); /* a longjmp left 11 and 2 */
}

static void test_a_native_exit_ends_the_managed_calls_above(void **state)
{
    (void)state;
    static const step steps[] = {
        {'+', 11, TOP - 480}, {'+', 1, CALL}, {'+', 2, CALL}, {'-', 11, TOP - 480}};
    EXPECT(steps, "+11 +1 +2 ~ ~ - ");
}

static void test_an_exception_through_native_frames_ends_them(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL},   {'+', 11, TOP - 480}, {'+', 2, CALL},
                                 {'-', 2, THROWN}, {'-', 1, THROWN},     {'+', 3, CALL},
                                 {'-', 3, CALL}};
    EXPECT(steps, "+1 +11 +2 ~ ~ ~ +3 - ");
}

static void test_a_runtime_that_unwinds_within_recorded_functions_continues(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL},        {'+', 2, CALL},        {'+', 3, CALL},
                                 {'+', 20, TOP - 960},  {'+', 21, TOP - 1040}, {'-', 3, THROWN},
                                 {'-', 21, TOP - 1040}, {'+', 22, TOP - 1040}, {'-', 2, THROWN},
                                 {'+', 4, CALL},        {'-', 4, CALL},        {'-', 1, CALL}};
    EXPECT(steps, "+1 +2 +3 +20 +21 - +22 ~ ~ ~ ~ +4 - - "); /* a handler of 1 calls 4 */
}

static void test_a_runtime_that_calls_handlers_while_it_unwinds_returns_later(void **state)
{
    (void)state;
    /* 20 and 21 unwind 3 and 2, call 4 (a handler of 2) in between, and return. */
    static const step steps[] = {{'+', 1, CALL},        {'+', 2, CALL},        {'+', 3, CALL},
                                 {'+', 20, TOP - 960},  {'+', 21, TOP - 1040}, {'-', 3, THROWN},
                                 {'+', 4, CALL},        {'-', 4, CALL},        {'-', 2, THROWN},
                                 {'-', 21, TOP - 1040}, {'-', 20, TOP - 960},  {'-', 1, CALL},
                                 {'-', 20, TOP - 960}};
    EXPECT_ORPHANS(steps, "+1 +2 +3 +20 +21 ~ ~ ~ +4 - ~ - ", 1);
}

static void test_calls_that_reuse_unwound_addresses_end_normally(void **state)
{
    (void)state;
    /* An exception leaves call 1, so 11 and 20 above it are unwound, too. Then 13 and 14 reuse the
     * addresses of 11 and 20. */
    static const step steps[] = {{'+', 10, TOP - 96},  {'+', 1, CALL},       {'+', 11, TOP - 480},
                                 {'+', 20, TOP - 960}, {'-', 1, THROWN},     {'-', 10, TOP - 96},
                                 {'+', 12, TOP - 96},  {'+', 13, TOP - 480}, {'+', 14, TOP - 960},
                                 {'+', 2, CALL},       {'-', 2, CALL},       {'-', 14, TOP - 960},
                                 {'-', 13, TOP - 480}, {'-', 12, TOP - 96}};
    EXPECT(steps, "+10 +1 +11 +20 ~ ~ ~ - +12 +13 +14 +2 - - - - ");
}

static void test_an_exception_leaves_code_hooked_in_place_call_by_call(void **state)
{
    (void)state;
    /* A handler of 2 calls 4 while the stack of 3 still exists. */
    static const step steps[] = {{'+', 1, TOP - 96}, {'+', 2, TOP - 192}, {'+', 3, TOP - 288},
                                 {'-', 3, PASSED},   {'+', 4, TOP - 600}, {'-', 4, TOP - 600},
                                 {'-', 2, PASSED},   {'+', 5, TOP - 192}, {'-', 5, TOP - 192},
                                 {'-', 1, TOP - 96}};
    EXPECT(steps, "+1 +2 +3 ~ +4 - ~ +5 - - ");
}

static void test_the_innermost_call_of_code_hooked_in_place_is_left_first(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, TOP - 96},  {'+', 2, TOP - 192}, {'+', 2, TOP - 288},
                                 {'-', 2, PASSED},    {'+', 3, TOP - 288}, {'-', 3, TOP - 288},
                                 {'-', 2, TOP - 192}, {'-', 1, TOP - 96}};
    EXPECT(steps, "+1 +2 +2 ~ +3 - - - ");
}

static void test_frames_without_hooks_that_an_exception_leaves_are_no_orphans(void **state)
{
    (void)state;
    static const step steps[] = {
        {'-', 2, PASSED}, {'+', 1, TOP - 96}, {'-', 2, PASSED}, {'-', 1, TOP - 96}};
    static const step managed[] = {{'+', 1, CALL}, {'-', 1, PASSED}, {'-', 1, CALL}};
    EXPECT(steps, "+1 - ");
    EXPECT(managed, "+1 - ");
}

static void test_a_runtime_that_unwinds_code_hooked_in_place_continues(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, TOP - 96},    {'+', 2, TOP - 192},   {'+', 3, TOP - 288},
                                 {'+', 20, TOP - 960},  {'+', 21, TOP - 1040}, {'-', 3, PASSED},
                                 {'-', 21, TOP - 1040}, {'+', 22, TOP - 1040}, {'-', 2, PASSED},
                                 {'+', 4, TOP - 192},   {'-', 4, TOP - 192},   {'-', 1, TOP - 96}};
    EXPECT(steps, "+1 +2 +3 +20 +21 - +22 ~ ~ ~ ~ +4 - - "); /* a handler of 1 calls 4 */
}

static void test_an_exception_ends_a_call_that_has_jumped_only_once(void **state)
{
    (void)state;
    static const step steps[] = {
        {'+', 1, TOP - 96},  {'+', 2, TOP - 192}, {'-', 2, TOP - 192 + SJ_STACK_TAIL_CALL},
        {'+', 3, TOP - 192}, {'-', 2, PASSED},    {'-', 3, PASSED},
        {'-', 1, TOP - 96}};
    EXPECT(steps, "+1 +2 +3 ~ ~ - ");
}

static void test_exits_without_entries_are_orphans(void **state)
{
    (void)state;
    static const step steps[] = {
        {'-', 9, CALL}, {'+', 1, CALL}, {'-', 9, THROWN}, {'-', 1, CALL}, {'-', 1, CALL}};
    EXPECT_ORPHANS(steps, "+1 - ", 3);
}

static bool is_nine(void *context, uint32_t function)
{
    (void)context;
    return function == 9;
}

/* Method 9 was muted when its calls were entered, so its exits may have no entry. */
static void test_exits_of_optional_entries_are_not_orphans(void **state)
{
    (void)state;
    static const step steps[] = {
        {'+', 1, CALL}, {'-', 9, CALL}, {'-', 8, CALL}, {'-', 9, THROWN}, {'-', 1, CALL}};
    story told;
    char text[TEXT_BYTES];
    sj_assembler_counters counters;
    open_story(&told, 0);
    sj_assembler_set_optional_entries(told.assembler, is_nine, NULL);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const sj_record record = record_of(&steps[i], told.ticks += 10);
        assert_int_equal(sj_assembler_feed(told.assembler, &record, 1, told.ticks), SJ_OK);
    }
    finish(&told);
    tell(&told, 1, text);
    assert_string_equal(text, "+1 - ");
    sj_assembler_get_counters(told.assembler, &counters);
    assert_int_equal(counters.orphan_exits, 1);
    assert_int_equal(counters.interrupted, 2);
    close_story(&told);
}

static void test_a_frame_that_was_hit_outside_of_its_call_leaves_no_orphan(void **state)
{
    (void)state;
    /* In `other`, the exception hits 3 before the entry of 3, then 2. In `same`, it hits a second
     * call of 2 before its entry. */
    static const step other[] = {
        {'+', 1, CALL}, {'+', 2, CALL}, {'-', 3, HIT}, {'-', 2, HIT}, {'-', 1, CALL}};
    static const step same[] = {
        {'+', 1, CALL}, {'+', 2, CALL}, {'-', 2, HIT}, {'-', 2, HIT}, {'-', 1, CALL}};
    static const step inside[] = {{'+', 1, CALL}, {'+', 2, CALL}, {'-', 2, HIT}, {'-', 1, CALL}};
    EXPECT(other, "+1 +2 ~ - ");
    EXPECT(same, "+1 +2 ~ - ");
    EXPECT(inside, "+1 +2 ~ - ");
}

static void test_a_native_function_of_the_same_number_is_not_left_by_a_managed_exit(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, TOP - 96}, {'-', 1, CALL}, {'-', 1, TOP - 96}};
    EXPECT_ORPHANS(steps, "+1 - ", 1);
}

static void test_a_handler_on_another_stack_takes_no_managed_calls(void **state)
{
    (void)state;
    static const step steps[] = {
        {'+', 1, CALL}, {'+', 20, OTHER - 80}, {'+', 2, CALL}, {'-', 2, THROWN}, {'-', 1, CALL}};
    EXPECT(steps, "+1 +2 ~ - ");
}

static void test_calls_that_ended_among_lost_records_are_truncated(void **state)
{
    (void)state;
    static const step steps[] = {{'+', 1, CALL},
                                 {'+', 2, CALL},
                                 {'n', SJ_NOTE_DROPPED_CALLS, 1},
                                 {'n', SJ_NOTE_DROPPED_EVENTS, 3},
                                 {'-', 1, CALL}};
    EXPECT(steps, "+1 +2 ! - ");
}

/* A random program of managed and native calls that sometimes throws. */
typedef struct frame {
    uint32_t function;
    uint64_t stack; /* of native calls; a managed call has the address of the call below it */
    bool is_managed;
} frame;

static size_t make_program(uint64_t seed, step *steps)
{
    static frame stack[256];
    size_t depth = 0;
    size_t count = 0;
    uint64_t random = seed;
    while (count < STEPS) {
        const uint64_t dice = trace_random(&random);
        const uint64_t below = depth > 0 ? stack[depth - 1].stack : TOP;
        if (depth == 0 || (depth < 200 && dice % 100 < 52)) {
            const bool is_managed = (dice >> 8) % 10 < 6;
            const uint32_t function = (uint32_t)(dice >> 16) % 7 + (is_managed ? 1 : 8);
            const uint64_t at = is_managed ? below : below - 16 - (dice >> 30) % 8 * 16;
            stack[depth++] = (frame){function, at, is_managed};
            steps[count++] = (step){'+', function, is_managed ? CALL : at};
            continue;
        }
        const frame left = stack[--depth];
        const bool is_thrown = (dice >> 8) % 20 == 0;
        steps[count++] = (step){'-', left.function,
                                left.is_managed ? (is_thrown ? THROWN : CALL)
                                : is_thrown     ? PASSED
                                                : left.stack};
    }
    return count;
}

static void test_single_and_batched_records_make_the_same_blocks(void **state)
{
    (void)state;
    static step steps[STEPS];
    static sj_record records[STEPS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        story told[2];
        sj_assembler_counters counters;
        const size_t count = make_program(seed, steps);
        for (int way = 0; way < 2; way++) {
            open_story(&told[way], seed % 2 ? 97 : 5000);
            for (size_t i = 0; i < count; i++) {
                records[i] = record_of(&steps[i], told[way].ticks += 10);
                if (way == 0) {
                    assert_int_equal(
                        sj_assembler_feed(told[0].assembler, &records[i], 1, told[0].ticks), SJ_OK);
                }
            }
            if (way == 1) {
                assert_int_equal(
                    sj_assembler_feed(told[1].assembler, records, count, told[1].ticks), SJ_OK);
            }
            finish(&told[way]);
        }
        sj_assembler_get_counters(told[0].assembler, &counters);
        assert_int_equal(counters.orphan_exits, 0);
        assert_int_equal(counters.truncated, 0);
        assert_true(counters.thrown > 0);
        assert_int_equal(told[0].store.count, told[1].store.count);
        for (size_t i = 0; i < told[0].store.count; i++) {
            assert_int_equal(told[0].store.blocks[i].size, told[1].store.blocks[i].size);
            assert_memory_equal(told[0].store.blocks[i].data, told[1].store.blocks[i].data,
                                told[0].store.blocks[i].size);
        }
        close_story(&told[0]);
        close_story(&told[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_nest_by_order),
        cmocka_unit_test(test_an_exception_leaves_call_by_call),
        cmocka_unit_test(exits_by_one_exception_are_counted),
        cmocka_unit_test(test_native_calls_inside_managed_ones_and_the_reverse_make_one_tree),
        cmocka_unit_test(test_a_native_entry_ends_managed_calls_only_with_the_native_one_below),
        cmocka_unit_test(test_a_native_exit_ends_the_managed_calls_above),
        cmocka_unit_test(test_an_exception_through_native_frames_ends_them),
        cmocka_unit_test(test_a_runtime_that_calls_handlers_while_it_unwinds_returns_later),
        cmocka_unit_test(test_a_runtime_that_unwinds_within_recorded_functions_continues),
        cmocka_unit_test(test_calls_that_reuse_unwound_addresses_end_normally),
        cmocka_unit_test(test_an_exception_leaves_code_hooked_in_place_call_by_call),
        cmocka_unit_test(test_the_innermost_call_of_code_hooked_in_place_is_left_first),
        cmocka_unit_test(test_frames_without_hooks_that_an_exception_leaves_are_no_orphans),
        cmocka_unit_test(test_a_runtime_that_unwinds_code_hooked_in_place_continues),
        cmocka_unit_test(test_an_exception_ends_a_call_that_has_jumped_only_once),
        cmocka_unit_test(test_exits_without_entries_are_orphans),
        cmocka_unit_test(test_exits_of_optional_entries_are_not_orphans),
        cmocka_unit_test(test_a_frame_that_was_hit_outside_of_its_call_leaves_no_orphan),
        cmocka_unit_test(test_a_native_function_of_the_same_number_is_not_left_by_a_managed_exit),
        cmocka_unit_test(test_a_handler_on_another_stack_takes_no_managed_calls),
        cmocka_unit_test(test_calls_that_ended_among_lost_records_are_truncated),
        cmocka_unit_test(test_single_and_batched_records_make_the_same_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
