/* A call is marked as untimed if its exit is untimed and its entry had a clock reading. */
#include "agent/assembler/assembler.h"
#include "agent/assembler/untimed_entry.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TEXT_BYTES = 256, TOP = 0x100000, LOW = 0xf0000, START = 1000, END = 2000 };

typedef struct step {
    sj_record_kind kind;
    uint32_t function;
    uint64_t stack;
} step;

static void feed(sj_assembler *assembler, const step *steps, size_t count, uint64_t ticks)
{
    for (size_t i = 0; i < count; i++) {
        const sj_record record =
            trace_record(steps[i].kind, steps[i].function, steps[i].stack, ticks + 10 * i);
        assert_int_equal(sj_assembler_feed(assembler, &record, 1, ticks + 10 * i), SJ_OK);
    }
}

/* Describes which calls of each block are SJ_CALL_UNTIMED: functions of the key-frame, then, after
 * +, functions of entries. */
static void assert_untimed(const block_store *store, const char *expected)
{
    char text[TEXT_BYTES] = "";
    size_t at = 0;
    sj_block_decoder *decoder;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    for (size_t i = 0; i < store->count; i++) {
        const stored_block *stored = &store->blocks[i];
        const sj_slice bytes = {.data = stored->data, .size = stored->size};
        sj_block block;
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        for (size_t frame = 0; frame < block.frame_count; frame++) {
            if ((block.frames[frame].flags & SJ_CALL_UNTIMED) != 0) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%u ",
                                       block.frames[frame].function);
            }
        }
        for (uint32_t event = 0; event < block.header.event_count; event++) {
            const uint32_t symbol = block.symbols16[event];
            if (symbol != 0 && block.untimed != NULL && block.untimed[symbol] != 0) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "+%u ",
                                       block.functions[symbol - 1]);
            }
        }
        at += (size_t)snprintf(text + at, sizeof(text) - at, "| ");
    }
    sj_block_decoder_free(decoder);
    assert_string_equal(text, expected);
}

static void a_call_with_an_untimed_exit_is_marked_in_any_block(void **state)
{
    static const step first[] = {{SJ_RECORD_ENTER, 1, TOP - 104},
                                 {SJ_RECORD_ENTER, 2, TOP - 200},
                                 {SJ_RECORD_ENTER, 2, TOP - 304},
                                 {SJ_RECORD_LEAVE, 2, (TOP - 304) | SJ_UNTIMED_EXIT},
                                 {SJ_RECORD_ENTER, 4, TOP - 304}};
    /* The calls of 3 and 4 have no exits. */
    static const step second[] = {{SJ_RECORD_ENTER, 3, TOP - 400},
                                  {SJ_RECORD_LEAVE, 2, (TOP - 200) | SJ_UNTIMED_EXIT},
                                  {SJ_RECORD_LEAVE, 1, TOP - 104}};
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store = {0};
    sj_assembler_counters counters;
    (void)state;
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = START,
                                          .has_untimed_exits = true,
                                          .encoder = encoder};
    const sj_assembler_sink sink = block_store_sink(&store);
    assert_int_equal(sj_assembler_new(&options, &sink, &assembler), SJ_OK);
    feed(assembler, first, sizeof(first) / sizeof(first[0]), START);
    assert_int_equal(sj_assembler_flush(assembler, START + 100), SJ_OK);
    feed(assembler, second, sizeof(second) / sizeof(second[0]), START + 100);
    assert_int_equal(sj_assembler_end(assembler, END, false, 0), SJ_OK);
    sj_assembler_get_counters(assembler, &counters);
    assert_null(assembler_check(&counters, &store));
    assert_int_equal(counters.orphan_exits, 0);
    assert_untimed(&store, "+2 | 2 | ");
    sj_assembler_free(assembler);
    sj_block_encoder_free(encoder);
    block_store_free(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_with_an_untimed_exit_is_marked_in_any_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
