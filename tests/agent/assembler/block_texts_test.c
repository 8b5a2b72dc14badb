/* The texts of a block's values have a limit. A text that exceeds it starts the next block and is
 * complete there. */
#include "agent/assembler/call_stack.h"
#include "tests/support/call_trace.h"
#include "tests/support/check.h"

#include <stdlib.h>

enum { TOP = 0x100000, FUNCTION = 7, CALLS = 2 * SJ_BLOCK_MAX_TEXT_BYTES / SJ_VALUE_TEXT_MOST + 9 };

static void call_with_text(sj_call_stack *stream, uint32_t number, const char *text)
{
    const uint64_t ticks = 2000 + 10 * (uint64_t)number;
    const sj_block_value value = {.call_index = number,
                                  .text = text,
                                  .text_bytes = SJ_VALUE_TEXT_MOST,
                                  .descriptor = (uint8_t)sj_value_descriptor(1, SJ_VALUE_STRING)};
    assert_int_equal(sj_call_stack_reserve_values(stream, 1, SJ_VALUE_TEXT_MOST), SJ_OK);
    assert_int_equal(sj_call_stack_enter(stream, FUNCTION, TOP - 64, ticks), SJ_OK);
    assert_int_equal(sj_call_stack_value(stream, &value), SJ_OK);
    assert_int_equal(sj_call_stack_leave(stream, FUNCTION, TOP - 64, ticks + 5, false), SJ_OK);
}

/* Checks that each value of the blocks is the whole `text` and belongs to the next call. Returns
 * the number of values. */
static uint32_t count_whole_texts(const block_store *store, const char *text)
{
    sj_block_decoder *decoder;
    uint32_t count = 0;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    for (size_t i = 0; i < store->count; i++) {
        sj_block block;
        const sj_slice bytes = {.data = store->blocks[i].data, .size = store->blocks[i].size};
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        for (size_t k = 0; k < block.value_count; k++) {
            assert_int_equal(block.values[k].call_index, count++);
            assert_int_equal(block.values[k].note, 0);
            assert_int_equal(block.values[k].text_bytes, SJ_VALUE_TEXT_MOST);
            assert_memory_equal(block.values[k].text, text, SJ_VALUE_TEXT_MOST);
        }
    }
    sj_block_decoder_free(decoder);
    return count;
}

static void no_text_is_cut_where_a_block_is_full(void **state)
{
    block_store store = {0};
    sj_stream_context context = {.block_events = 1 << 16, .clock_step = 1};
    sj_call_stack *stream = NULL;
    char text[SJ_VALUE_TEXT_MOST];
    (void)state;
    memset(text, 't', sizeof(text));
    context.sink = block_store_sink(&store);
    assert_int_equal(sj_block_encoder_new(&context.encoder), SJ_OK);
    assert_int_equal(sj_call_stack_new(&context, TOP, true, 1000, &stream), SJ_OK);
    for (uint32_t i = 0; i < CALLS; i++) {
        call_with_text(stream, i, text);
    }
    assert_int_equal(sj_call_stack_cut(stream, 1 << 20, 0), SJ_OK);
    assert_int_equal(store.count, 3);
    assert_int_equal(count_whole_texts(&store, text), CALLS);
    sj_call_stack_free(stream);
    sj_block_encoder_free(context.encoder);
    free(context.output);
    block_store_free(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_text_is_cut_where_a_block_is_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
