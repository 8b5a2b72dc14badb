/* Tests tail calls, with other records at each place where they can come in between. Each test
 * feeds a short sequence of records and checks the blocks. */
#include "agent/assembler/assembler.h"
#include "agent/assembler/tail_calls.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096, TOP = 0x100000, LOW = 0xf0000, OTHER = 0x800000, STEP = 10 };
enum { MAIN = TOP - 0x100, CALL = TOP - 0x200, DEEP = TOP - 0x300 };

typedef struct story {
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store;
    uint64_t ticks;
} story;

static void open_story(story *told, bool knows_stack)
{
    *told = (story){.ticks = 1000};
    assert_int_equal(sj_block_encoder_new(&told->encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = knows_stack ? LOW : 0,
                                          .stack_high = knows_stack ? TOP : 0,
                                          .start_ticks = told->ticks,
                                          .encoder = told->encoder};
    const sj_assembler_sink sink = block_store_sink(&told->store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told->assembler), SJ_OK);
}

static void feed(story *told, sj_record_kind kind, uint32_t function, uint64_t stack)
{
    told->ticks += STEP;
    const sj_record record = trace_record(kind, function, stack, told->ticks);
    assert_int_equal(sj_assembler_feed(told->assembler, &record, 1, told->ticks), SJ_OK);
}

static void enter(story *told, uint32_t function, uint64_t stack)
{
    feed(told, SJ_RECORD_ENTER, function, stack);
}

static void leave(story *told, uint32_t function, uint64_t stack)
{
    feed(told, SJ_RECORD_LEAVE, function, stack);
}

static void jump(story *told, uint32_t function, uint64_t stack)
{
    feed(told, SJ_RECORD_LEAVE, function, stack + SJ_STACK_TAIL_CALL);
}

/* Feeds the exit and the entry of one tail call, as one probe writes them. */
static void tail_call(story *told, uint32_t from, uint32_t to, uint64_t stack)
{
    told->ticks += STEP;
    const sj_record records[] = {
        trace_record(SJ_RECORD_LEAVE, from, stack + SJ_STACK_TAIL_CALL, told->ticks),
        trace_record(SJ_RECORD_ENTER, to, stack, told->ticks)};
    assert_int_equal(sj_assembler_feed(told->assembler, records, 2, told->ticks), SJ_OK);
}

static void flush(story *told)
{
    assert_int_equal(sj_assembler_flush(told->assembler, told->ticks), SJ_OK);
}

static void finish(story *told, bool orderly)
{
    assert_int_equal(sj_assembler_end(told->assembler, told->ticks + STEP, orderly, 0), SJ_OK);
    sj_assembler_counters counters;
    sj_assembler_get_counters(told->assembler, &counters);
    assert_null(assembler_check(&counters, &told->store));
}

static void close_story(story *told)
{
    sj_assembler_free(told->assembler);
    sj_block_encoder_free(told->encoder);
    block_store_free(&told->store);
}

typedef struct teller {
    char text[TEXT_BYTES];
    size_t used;
    size_t ending;
    size_t tail_call;
} teller;

#define TELL(at, ...)                                                                              \
    ((at)->used += (size_t)snprintf((at)->text + (at)->used, TEXT_BYTES - (at)->used, __VA_ARGS__))

static void tell_event(teller *at, const sj_block *block, uint32_t event)
{
    const uint32_t symbol = block->symbols16[event];
    if (symbol == 0) {
        const bool ended =
            at->ending < block->ending_count && block->endings[at->ending].event == event;
        const uint32_t how = ended ? block->endings[at->ending++].ending : SJ_ENDING_RETURNED;
        TELL(at, "%c ", "-~=!"[how]);
        return;
    }
    const uint32_t function = block->functions[symbol - 1];
    const sj_block_tail_call *call = &block->tail_calls[at->tail_call];
    if (at->tail_call == block->tail_call_count || call->event != event) {
        TELL(at, "+%u ", function);
        return;
    }
    at->tail_call++;
    TELL(at, call->ended != 0 ? ">%u(%u) " : ">%u ", function, call->ended);
}

/* Describes the blocks: +function enters, >function by a tail call, (n) if n calls left the chain
 * for it, - returns, ~ unwound, = open at the end, ! truncated, {..} the open calls of a key-frame
 * (> after those that have jumped), | the end of a block. */
static void assert_told(const story *told, const char *expected)
{
    teller at = {0};
    sj_block_decoder *decoder;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    for (size_t i = 0; i < told->store.count; i++) {
        const stored_block *stored = &told->store.blocks[i];
        sj_block block;
        assert_int_equal(sj_block_decode(decoder,
                                         (sj_slice){.data = stored->data, .size = stored->size},
                                         SJ_WANT_ALL | SJ_WANT_TAIL_CALLS, &block),
                         SJ_OK);
        for (size_t k = 0; k < block.frame_count; k++) {
            TELL(&at, "%s%u%s%s", k == 0 ? "{" : " ", block.frames[k].function,
                 block.frames[k].jumped_ticks != 0 ? ">" : "",
                 k + 1 == block.frame_count ? "} " : "");
        }
        at.ending = 0;
        at.tail_call = 0;
        for (uint32_t event = 0; event < block.header.event_count; event++) {
            tell_event(&at, &block, event);
        }
        TELL(&at, "| ");
    }
    sj_block_decoder_free(decoder);
    assert_string_equal(at.text, expected);
}

typedef void (*story_line)(story *told);

/* Feeds a sequence to an assembler that uses the short loops, and to one that does not know the
 * stack. */
static void assert_both(story_line line, bool orderly, const char *expected)
{
    for (int knows = 0; knows <= 1; knows++) {
        story told;
        open_story(&told, knows);
        enter(&told, 1, MAIN);
        line(&told);
        finish(&told, orderly);
        assert_told(&told, expected);
        close_story(&told);
    }
}

static void one_call(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    enter(told, 4, DEEP);
    leave(told, 4, DEEP);
    leave(told, 3, CALL);
    leave(told, 1, MAIN);
}

static void a_call_ends_with_what_it_jumped_to(void **state)
{
    (void)state;
    assert_both(one_call, false, "+1 +2 >3 +4 - - - - | ");
}

static void two_clocks(story *told)
{
    enter(told, 2, CALL);
    jump(told, 2, CALL);
    enter(told, 3, CALL);
    leave(told, 3, CALL);
    enter(told, 2, CALL); /* an ordinary call after the tail call */
    leave(told, 2, CALL);
    enter(told, 3, CALL);
}

static void an_exit_and_an_entry_with_two_times_are_a_tail_call_too(void **state)
{
    (void)state;
    assert_both(two_clocks, false, "+1 +2 >3 - - +2 - +3 = = | ");
}

static void jump_elsewhere(story *told)
{
    enter(told, 2, CALL);
    jump(told, 2, CALL);
    enter(told, 5, DEEP); /* a signal handler came first */
    leave(told, 5, DEEP);
    enter(told, 3, CALL);
    leave(told, 3, CALL);
    enter(told, 2, CALL);
    jump(told, 2, CALL);
    leave(told, 1, MAIN);
}

static void a_record_in_between_ends_the_call_when_it_jumped(void **state)
{
    (void)state;
    assert_both(jump_elsewhere, false, "+1 +2 - +5 - +3 - +2 - - | ");
}

static void chain_to_throw(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    tail_call(told, 3, 4, CALL);
    enter(told, 5, DEEP);
    leave(told, 1, MAIN);
}

static void a_throw_unwinds_the_chain(void **state)
{
    (void)state;
    assert_both(chain_to_throw, false, "+1 +2 >3 >4 +5 ~ ~ ~ ~ - | ");
}

static void throw_to_call(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    enter(told, 6, CALL); /* the frame belongs to another call now */
    leave(told, 6, CALL);
}

static void an_entry_in_the_place_of_a_chain_unwinds_it(void **state)
{
    (void)state;
    assert_both(throw_to_call, true, "+1 +2 >3 ~ ~ +6 - ~ | ");
}

static void loop(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    tail_call(told, 3, 4, CALL);
    tail_call(told, 4, 3, CALL);
    tail_call(told, 3, 4, CALL);
    tail_call(told, 4, 3, CALL);
    leave(told, 3, CALL);
    leave(told, 1, MAIN);
}

static void a_function_that_comes_again_is_the_head_of_what_follows(void **state)
{
    (void)state;
    assert_both(loop, false, "+1 +2 >3 >4 - >3(1) - >4(1) - >3(1) - - - - | ");
}

static void self_calls(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 2, CALL);
    tail_call(told, 2, 2, CALL);
    tail_call(told, 2, 2, CALL);
    leave(told, 2, CALL);
}

static void a_function_that_jumps_to_itself_is_its_own_head(void **state)
{
    (void)state;
    assert_both(self_calls, false, "+1 +2 >2 - >2(1) - >2(1) - - = | ");
}

static void long_chain(story *told)
{
    enter(told, 2, CALL);
    for (uint32_t i = 2; i < 12; i++) {
        tail_call(told, i, i + 1, CALL);
    }
    leave(told, 12, CALL);
    leave(told, 1, MAIN);
}

static void a_long_chain_is_folded(void **state)
{
    (void)state;
    assert_int_equal(SJ_TAIL_CHAIN, 8);
    assert_both(long_chain, false,
                "+1 +2 >3 >4 >5 >6 >7 >8 >9 - >10(1) - >11(1) - >12(1) - - - - - - - - - | ");
}

static void head_that_widens(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    tail_call(told, 3, 4, CALL);
    tail_call(told, 4, 4, CALL); /* the call of 4 becomes the head of the chain (tail_calls.h) */
    tail_call(told, 4, 5, CALL);
    tail_call(told, 5, 3, CALL); /* 3 precedes the head, so 3 becomes the head */
    tail_call(told, 3, 5, CALL);
    leave(told, 5, CALL);
}

static void a_recurring_outer_function_becomes_the_head(void **state)
{
    (void)state;
    assert_both(head_that_widens, false, "+1 +2 >3 >4 >4 - >5(1) - - >3(2) - >5(1) - - - = | ");
}

static void cut_within(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    flush(told);
    tail_call(told, 3, 4, CALL);
    jump(told, 4, CALL);
    flush(told);
    enter(told, 5, CALL);
    flush(told);
    leave(told, 5, CALL);
}

static void a_chain_continues_in_the_next_block(void **state)
{
    (void)state;
    assert_both(cut_within, false,
                "+1 +2 >3 | {1 2> 3} >4 | {1 2> 3> 4>} >5 | {1 2> 3> 4> 5} - - - - = | ");
}

static void drops(story *told)
{
    enter(told, 2, CALL);
    jump(told, 2, CALL);
    feed(told, SJ_RECORD_NOTE, SJ_NOTE_WAITED, 5); /* a wait loses no record */
    enter(told, 3, CALL);
    jump(told, 3, CALL);
    feed(told, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, 1);
    feed(told, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 1);
    enter(told, 4, CALL);
    leave(told, 4, CALL);
}

static void a_loss_after_a_jump_makes_its_target_unknown(void **state)
{
    (void)state;
    assert_both(drops, false, "+1 +2 >3 - - +4 - = | ");
}

static void killed(story *told)
{
    enter(told, 2, CALL);
    tail_call(told, 2, 3, CALL);
    enter(told, 4, DEEP);
    jump(told, 4, DEEP);
}

static void a_chain_is_open_at_the_end(void **state)
{
    (void)state;
    assert_both(killed, false, "+1 +2 >3 +4 - = = = | ");
    assert_both(killed, true, "+1 +2 >3 +4 - ~ ~ ~ | ");
}

static void two_stacks(story *told)
{
    enter(told, 2, CALL);
    jump(told, 2, CALL);
    enter(told, 7, OTHER); /* a coroutine's function */
    leave(told, 7, OTHER);
    enter(told, 3, CALL);
    leave(told, 3, CALL);
}

static void each_stack_has_its_own_jump(void **state)
{
    (void)state;
    assert_both(two_stacks, false, "+1 +2 >3 - - = | +7 - | ");
}

static bool is_two(void *context, uint32_t function)
{
    (void)context;
    return function == 2;
}

static void a_call_that_has_jumped_needs_no_exit_any_more(void **state)
{
    (void)state;
    story told;
    open_story(&told, true);
    enter(&told, 1, MAIN);
    enter(&told, 2, CALL);
    assert_true(sj_assembler_has_open(told.assembler, is_two, NULL));
    tail_call(&told, 2, 3, CALL);
    assert_false(sj_assembler_has_open(told.assembler, is_two, NULL));
    finish(&told, false);
    close_story(&told);
}

static uint32_t deepest(const story *told)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < told->store.count; i++) {
        const sj_block_header *header = &told->store.blocks[i].header;
        deepest = header->open_depth > deepest ? header->open_depth : deepest;
    }
    return deepest;
}

/* Runs a state machine of many states in random order. Few calls stay open, and each call is
 * stored. */
static void chains_of_a_million_calls_are_folded(void **state)
{
    enum { CALLS = 1000000, STATES = 200 };
    (void)state;
    story told;
    open_story(&told, true);
    enter(&told, 1, MAIN);
    uint64_t random = 7;
    uint32_t at = 2;
    enter(&told, at, CALL);
    for (int i = 0; i < CALLS; i++) {
        const uint32_t next = 2 + (uint32_t)(trace_random(&random) >> 33) % STATES;
        tail_call(&told, at, next, CALL);
        at = next;
    }
    leave(&told, at, CALL);
    leave(&told, 1, MAIN);
    finish(&told, false);
    sj_assembler_counters counters;
    sj_assembler_get_counters(told.assembler, &counters);
    assert_int_equal(counters.calls, CALLS + 2);
    assert_int_equal(counters.jumped, CALLS);
    assert_int_equal(counters.ended_jumped, CALLS);
    assert_int_equal(counters.returned, 2);
    assert_true(deepest(&told) <= 1 + SJ_TAIL_CHAIN);
    close_story(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_with_what_it_jumped_to),
        cmocka_unit_test(an_exit_and_an_entry_with_two_times_are_a_tail_call_too),
        cmocka_unit_test(a_record_in_between_ends_the_call_when_it_jumped),
        cmocka_unit_test(a_throw_unwinds_the_chain),
        cmocka_unit_test(an_entry_in_the_place_of_a_chain_unwinds_it),
        cmocka_unit_test(a_function_that_comes_again_is_the_head_of_what_follows),
        cmocka_unit_test(a_function_that_jumps_to_itself_is_its_own_head),
        cmocka_unit_test(a_long_chain_is_folded),
        cmocka_unit_test(a_recurring_outer_function_becomes_the_head),
        cmocka_unit_test(a_chain_continues_in_the_next_block),
        cmocka_unit_test(a_loss_after_a_jump_makes_its_target_unknown),
        cmocka_unit_test(a_chain_is_open_at_the_end),
        cmocka_unit_test(each_stack_has_its_own_jump),
        cmocka_unit_test(a_call_that_has_jumped_needs_no_exit_any_more),
        cmocka_unit_test(chains_of_a_million_calls_are_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
