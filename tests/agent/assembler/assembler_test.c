/* Each test feeds a short sequence of records and checks the blocks that the assembler delivers. */
#include "agent/assembler/assembler.h"
#include "proto/block/call_trust.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096, TOP = 0x100000, LOW = 0xf0000, OTHER = 0x800000, THIRD = 0x900000 };

typedef struct story {
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store;
    uint64_t ticks;
} story;

static story open_story(void)
{
    story made = {.ticks = 1000};
    assert_int_equal(sj_block_encoder_new(&made.encoder), SJ_OK);
    return made;
}

static void open_with(story *told, uint32_t block_events)
{
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = told->ticks,
                                          .block_events = block_events,
                                          .encoder = told->encoder};
    const sj_assembler_sink sink = block_store_sink(&told->store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told->assembler), SJ_OK);
}

static void feed_at(story *told, sj_record_kind kind, uint32_t function, uint64_t stack,
                    uint64_t ticks)
{
    const sj_record record = trace_record(kind, function, stack, ticks);
    const uint64_t now = ticks > told->ticks ? ticks : told->ticks;
    told->ticks = now;
    assert_int_equal(sj_assembler_feed(told->assembler, &record, 1, now), SJ_OK);
}

static void enter(story *told, uint32_t function, uint64_t stack)
{
    feed_at(told, SJ_RECORD_ENTER, function, stack, told->ticks + 10);
}

static void leave(story *told, uint32_t function, uint64_t stack)
{
    feed_at(told, SJ_RECORD_LEAVE, function, stack, told->ticks + 10);
}

static void note(story *told, sj_note what, uint64_t argument)
{
    feed_at(told, SJ_RECORD_NOTE, what, argument, told->ticks + 10);
}

typedef struct step_record {
    sj_record_kind kind;
    uint32_t function;
    uint64_t stack;
} step_record;

/* Feeds all records in one call, 10 ticks apart. */
static void feed_together(story *told, const step_record *steps, size_t count)
{
    sj_record records[8];
    assert_true(count <= sizeof(records) / sizeof(records[0]));
    for (size_t i = 0; i < count; i++) {
        told->ticks += 10;
        records[i] = trace_record(steps[i].kind, steps[i].function, steps[i].stack, told->ticks);
    }
    assert_int_equal(sj_assembler_feed(told->assembler, records, count, told->ticks), SJ_OK);
}

static void finish(story *told, bool orderly)
{
    assert_int_equal(sj_assembler_end(told->assembler, told->ticks + 10, orderly, 0), SJ_OK);
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

static void tell_event(const sj_block *block, uint32_t event, size_t *ending, char **at,
                       const char *end)
{
    const uint32_t symbol = block->symbols16[event];
    if (symbol != 0) {
        *at += snprintf(*at, (size_t)(end - *at), "+%u ", block->functions[symbol - 1]);
        return;
    }
    const char *how = "-";
    if (*ending < block->ending_count && block->endings[*ending].event == event) {
        static const char *const endings[] = {"-", "~", "=", "!"};
        how = endings[block->endings[(*ending)++].ending];
    }
    *at += snprintf(*at, (size_t)(end - *at), "%s ", how);
}

static void tell_gaps(const sj_block *block, uint32_t event, size_t *gap, char **at,
                      const char *end)
{
    for (; *gap < block->gap_count && block->gaps[*gap].before_event == event; (*gap)++) {
        const sj_gap *told = &block->gaps[*gap];
        *at += snprintf(*at, (size_t)(end - *at), "[%u:%u,%u] ", told->reason,
                        (unsigned)told->calls, (unsigned)told->events);
    }
}

/* Describes the blocks of a stream: +function enters, - returns, ~ unwound, = open at the end, !
 * truncated, [reason:calls,events] a gap, | the end of a block. */
static void assert_told(const story *told, uint32_t stream, const char *expected)
{
    char text[TEXT_BYTES] = "";
    char *at = text;
    const char *end = text + sizeof(text);
    sj_block_decoder *decoder;
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
        size_t gap = 0;
        for (uint32_t event = 0; event <= block.header.event_count; event++) {
            tell_gaps(&block, event, &gap, &at, end);
            if (event < block.header.event_count) {
                tell_event(&block, event, &ending, &at, end);
            }
        }
        at += snprintf(at, (size_t)(end - at), "| ");
    }
    sj_block_decoder_free(decoder);
    assert_string_equal(text, expected);
}

static void test_nested_calls_return(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    leave(&told, 2, TOP - 200);
    enter(&told, 3, TOP - 200);
    leave(&told, 3, TOP - 200);
    leave(&told, 1, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 - +3 - - | ");
    assert_int_equal(told.store.own_streams, 1);
    close_story(&told);
}

static void test_a_throw_unwinds_what_it_skips(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    enter(&told, 3, TOP - 300);
    leave(&told, 1, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 +3 ~ ~ - | ");
    close_story(&told);
}

static void test_recursion_that_throws_to_its_own_outer_frame(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 7, TOP - 100);
    enter(&told, 7, TOP - 200);
    enter(&told, 7, TOP - 300);
    leave(&told, 7, TOP - 200); /* the middle call caught the exception */
    leave(&told, 7, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+7 +7 +7 ~ - - | ");
    close_story(&told);
}

static void test_a_longjmp_shows_at_the_next_entry(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    enter(&told, 3, TOP - 300);
    enter(&told, 4, TOP - 200);
    leave(&told, 4, TOP - 200);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 +3 ~ ~ +4 - = | ");
    close_story(&told);
}

static void test_a_tail_call_is_an_exit_and_an_entry_at_one_address(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    leave(&told, 2, TOP - 200);
    enter(&told, 2, TOP - 200); /* call 2 jumped to itself */
    leave(&told, 2, TOP - 200);
    enter(&told, 3, TOP - 200);
    leave(&told, 3, TOP - 200);
    leave(&told, 1, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 - +2 - +3 - - | ");
    close_story(&told);
}

static void test_exits_of_calls_open_before_recording_are_orphans(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    leave(&told, 5, TOP - 300);
    leave(&told, 6, TOP - 200);
    enter(&told, 1, TOP - 200);
    leave(&told, 1, TOP - 200);
    finish(&told, false);
    assert_told(&told, 1, "[7:0,2] +1 - | ");
    close_story(&told);
}

/* Returns the flags of a call in the key-frame of a block. */
static uint32_t flags_of_open_call(const story *told, size_t number, size_t frame)
{
    sj_block_decoder *decoder;
    sj_block block;
    const stored_block *stored = &told->store.blocks[number];
    const sj_slice bytes = {.data = stored->data, .size = stored->size};
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_true(frame < block.frame_count);
    const uint32_t flags = block.frames[frame].flags;
    sj_block_decoder_free(decoder);
    return flags;
}

static void test_calls_open_before_recording_are_entered_at_its_beginning(void **state)
{
    (void)state;
    static const sj_stack_frame open[] = {{.function = 8, .stack = TOP - 50},
                                          {.function = 9, .stack = TOP - 80}};
    story told = open_story();
    open_with(&told, 0);
    assert_int_equal(sj_assembler_preopen(told.assembler, open, 2, 1000), SJ_OK);
    enter(&told, 1, TOP - 100);
    assert_int_equal(sj_assembler_preopen(told.assembler, open, 2, 1000), SJ_EINVAL);
    leave(&told, 1, TOP - 100);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    leave(&told, 9, TOP - 80);
    enter(&told, 2, TOP - 80);
    finish(&told, false);
    assert_told(&told, 1, "+8 +9 [8:0,0] +1 - | - +2 = = | ");
    assert_int_equal(told.store.blocks[0].header.open_depth, 0);
    assert_int_equal(told.store.blocks[1].header.open_depth, 2);
    assert_int_equal(told.store.blocks[1].header.first_call, 3);
    /* the call that ends in a later block keeps the flag; calls entered since do not have it */
    assert_int_equal(flags_of_open_call(&told, 1, 0), SJ_CALL_BEFORE_RECORDING);
    assert_int_equal(flags_of_open_call(&told, 1, 1), SJ_CALL_BEFORE_RECORDING);
    close_story(&told);
}

static void test_other_stacks_are_reported_apart_among_records_that_come_together(void **state)
{
    (void)state;
    static const step_record steps[] = {
        {SJ_RECORD_ENTER, 1, TOP - 100}, {SJ_RECORD_LEAVE, 1, TOP - 100},
        {SJ_RECORD_ENTER, 2, TOP + 200}, {SJ_RECORD_LEAVE, 2, TOP + 200},
        {SJ_RECORD_ENTER, 1, TOP - 100}, {SJ_RECORD_ENTER, 3, LOW - 200},
        {SJ_RECORD_LEAVE, 3, LOW - 200}, {SJ_RECORD_LEAVE, 1, TOP - 100}};
    story told = open_story();
    open_with(&told, 0);
    feed_together(&told, steps, 8);
    finish(&told, false);
    assert_told(&told, 1, "+1 - +1 - | ");
    assert_told(&told, 2, "+2 - | ");
    assert_told(&told, 3, "+3 - | ");
    close_story(&told);
}

static void test_a_call_open_above_the_stack_adopts_no_other_calls(void **state)
{
    (void)state;
    static const sj_stack_frame open[] = {{.function = 8, .stack = TOP + 500}};
    static const step_record steps[] = {
        {SJ_RECORD_ENTER, 1, TOP - 100}, {SJ_RECORD_ENTER, 4, TOP - 200},
        {SJ_RECORD_LEAVE, 4, TOP - 200}, {SJ_RECORD_LEAVE, 1, TOP - 100},
        {SJ_RECORD_ENTER, 2, TOP + 200}, {SJ_RECORD_LEAVE, 2, TOP + 200}};
    story told = open_story();
    open_with(&told, 0);
    assert_int_equal(sj_assembler_preopen(told.assembler, open, 1, 1000), SJ_OK);
    feed_together(&told, steps, 6);
    finish(&told, false);
    assert_told(&told, 1, "+8 [8:0,0] +1 +4 - - = | ");
    assert_told(&told, 2, "+2 - | ");
    close_story(&told);
}

static void test_a_call_open_below_the_stack_adopts_no_other_calls(void **state)
{
    (void)state;
    static const sj_stack_frame open[] = {{.function = 7, .stack = TOP - 50},
                                          {.function = 8, .stack = LOW - 100}};
    static const step_record steps[] = {{SJ_RECORD_ENTER, 5, LOW - 200},
                                        {SJ_RECORD_LEAVE, 5, LOW - 200}};
    story told = open_story();
    open_with(&told, 0);
    assert_int_equal(sj_assembler_preopen(told.assembler, open, 2, 1000), SJ_OK);
    feed_together(&told, steps, 2);
    finish(&told, false);
    assert_told(&told, 1, "+7 +8 [8:0,0] = = | ");
    assert_told(&told, 2, "+5 - | ");
    close_story(&told);
}

static void test_coroutines_have_streams_of_their_own_and_unwind_nothing(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);   /* resumes the coroutine */
    enter(&told, 11, OTHER - 64); /* on the coroutine's stack */
    enter(&told, 12, OTHER - 200);
    leave(&told, 2, TOP - 200); /* the coroutine yielded */
    enter(&told, 3, TOP - 200);
    enter(&told, 21, THIRD - 64);
    leave(&told, 3, TOP - 200);
    enter(&told, 2, TOP - 200);
    leave(&told, 12, OTHER - 200); /* the first coroutine resumes */
    leave(&told, 11, OTHER - 64);
    leave(&told, 2, TOP - 200);
    leave(&told, 1, TOP - 100);
    leave(&told, 21, THIRD - 64);
    finish(&told, true);
    assert_told(&told, 1, "+1 +2 - +3 - +2 - - | ");
    assert_told(&told, 2, "+11 +12 - - | ");
    assert_told(&told, 3, "+21 - | ");
    assert_int_equal(told.store.own_streams, 1);
    close_story(&told);
}

static void test_adjacent_small_coroutine_stacks_are_reported_apart(void **state)
{
    (void)state;
    enum { STACK = 16 * 1024 };
    story told = open_story();
    open_with(&told, 0);
    for (uint64_t i = 0; i < 4; i++) {
        enter(&told, 10 + (uint32_t)i, OTHER - i * STACK - 64);
        enter(&told, 20 + (uint32_t)i, OTHER - i * STACK - 300);
    }
    for (uint64_t i = 0; i < 4; i++) {
        leave(&told, 20 + (uint32_t)i, OTHER - i * STACK - 300);
        leave(&told, 10 + (uint32_t)i, OTHER - i * STACK - 64);
    }
    finish(&told, false);
    assert_told(&told, 1, "+10 +20 - - | ");
    assert_told(&told, 2, "+11 +21 - - | ");
    assert_told(&told, 3, "+12 +22 - - | ");
    assert_told(&told, 4, "+13 +23 - - | ");
    close_story(&told);
}

static void test_a_handler_on_an_alternate_stack_has_its_own_stream(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 50, OTHER - 500);
    leave(&told, 50, OTHER - 500);
    leave(&told, 1, TOP - 100);
    enter(&told, 1, TOP - 100);
    enter(&told, 50, OTHER - 500);
    leave(&told, 50, OTHER - 500);
    leave(&told, 1, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 - +1 - | ");
    assert_told(&told, 2, "+50 - +50 - | ");
    close_story(&told);
}

static void test_a_handler_between_clock_and_reservation_runs_before_the_call(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    feed_at(&told, SJ_RECORD_ENTER, 1, TOP - 100, 1010);
    feed_at(&told, SJ_RECORD_ENTER, 50, TOP - 400, 1030); /* a handler in the probe of call 2 */
    feed_at(&told, SJ_RECORD_LEAVE, 50, TOP - 400, 1040);
    feed_at(&told, SJ_RECORD_ENTER, 2, TOP - 200, 1020);
    feed_at(&told, SJ_RECORD_ENTER, 3, TOP - 300, 1019); /* on a processor whose clock is behind */
    feed_at(&told, SJ_RECORD_LEAVE, 3, TOP - 300, 1050);
    feed_at(&told, SJ_RECORD_LEAVE, 2, TOP - 200, 1200);
    feed_at(&told, SJ_RECORD_LEAVE, 1, TOP - 100, 1210);
    finish(&told, false);
    assert_told(&told, 1, "+1 +50 - +2 +3 - - - | ");
    close_story(&told);
}

static void test_a_clock_that_goes_back_keeps_the_order_of_records(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    feed_at(&told, SJ_RECORD_ENTER, 1, TOP - 100, 1100);
    feed_at(&told, SJ_RECORD_LEAVE, 1, TOP - 100, 1090);
    feed_at(&told, SJ_RECORD_ENTER, 2, TOP - 100, 1095);
    feed_at(&told, SJ_RECORD_LEAVE, 2, TOP - 100, 1200);
    finish(&told, false);
    assert_told(&told, 1, "+1 - +2 - | ");
    assert_int_equal(told.store.blocks[0].header.first_ticks, 1100);
    close_story(&told);
}

static void test_dropped_records_are_numbered_and_truncate_what_ended_among_them(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    enter(&told, 3, TOP - 300);
    note(&told, SJ_NOTE_DROPPED_CALLS, 5);
    note(&told, SJ_NOTE_DROPPED_EVENTS, 12);
    enter(&told, 4, TOP - 200); /* calls 2 and 3 have ended */
    leave(&told, 4, TOP - 200);
    leave(&told, 1, TOP - 100);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    enter(&told, 6, TOP - 100);
    leave(&told, 6, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 +3 [1:5,12] ! ! +4 - - | +6 - | ");
    const sj_block_header *next = &told.store.blocks[1].header;
    assert_int_equal(next->first_event, 8 + 12);
    assert_int_equal(next->first_call, 4 + 5);
    assert_int_equal(next->uncertain_depth, 0);
    close_story(&told);
}

static void test_calls_entered_above_unknown_calls_are_uncertain(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    note(&told, SJ_NOTE_DROPPED_CALLS, 1);
    note(&told, SJ_NOTE_DROPPED_EVENTS, 2);
    enter(&told, 3, TOP - 300);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    leave(&told, 3, TOP - 300);
    /* Records are lost, so this may be call 2 or another call: its caller is unknown. */
    leave(&told, 2, TOP - 200);
    enter(&told, 4, TOP - 200);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    finish(&told, false);
    sj_block_decoder *decoder;
    sj_block block;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    const stored_block *second = &told.store.blocks[1];
    sj_slice bytes = {.data = second->data, .size = second->size};
    assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(block.header.gap_depth, 2);
    assert_int_equal(block.header.uncertain_depth, 2);
    assert_int_equal(block.frames[0].flags, SJ_CALL_GAP);
    assert_int_equal(block.frames[2].flags, SJ_CALL_UNCERTAIN_DEPTH);
    const stored_block *third = &told.store.blocks[2];
    bytes = (sj_slice){.data = third->data, .size = third->size};
    assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(block.header.gap_depth, 1);
    assert_int_equal(block.header.uncertain_depth, 1);
    assert_int_equal(block.frames[1].flags, SJ_CALL_UNCERTAIN_DEPTH);
    sj_block_decoder_free(decoder);
    close_story(&told);
}

static void test_a_suspended_stack_gets_a_gap_when_it_is_resumed(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 11, OTHER - 64);
    enter(&told, 2, TOP - 200);
    note(&told, SJ_NOTE_DROPPED_CALLS, 1);
    note(&told, SJ_NOTE_DROPPED_EVENTS, 2);
    leave(&told, 2, TOP - 200);
    leave(&told, 11, OTHER - 64);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 [1:1,2] - = | ");
    assert_told(&told, 2, "+11 [1:0,0] - | ");
    close_story(&told);
}

static void test_a_wait_for_the_drain_flags_open_calls_and_loses_none(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    note(&told, SJ_NOTE_WAITED, 5);
    enter(&told, 2, TOP - 200);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    finish(&told, false);
    assert_told(&told, 1, "+1 [6:0,0] +2 | = = | ");
    assert_int_equal(told.store.blocks[1].header.waited_depth, 1);
    assert_int_equal(told.store.blocks[1].header.gap_depth, 0);
    close_story(&told);
}

static void test_notes_of_unwinding_marks_and_pauses_are_applied(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    enter(&told, 2, TOP - 200);
    note(&told, SJ_NOTE_MARK_BEGIN, 3);
    note(&told, SJ_NOTE_UNWOUND, TOP - 150);
    note(&told, SJ_NOTE_RECORDING, 0);
    note(&told, SJ_NOTE_RECORDING, 1);
    enter(&told, 4, TOP - 100); /* call 1 ended while recording was off */
    leave(&told, 4, TOP - 100);
    note(&told, SJ_NOTE_MARK_END, 3);
    note(&told, 99, 0);
    feed_at(&told, (sj_record_kind)3, 1, TOP - 100, told.ticks + 1);
    finish(&told, false);
    assert_told(&told, 1, "+1 +2 ~ [4:0,0] ! +4 - | ");
    assert_int_equal(told.store.marks, 2);
    sj_assembler_counters counters;
    sj_assembler_get_counters(told.assembler, &counters);
    assert_int_equal(counters.bad_records, 2);
    close_story(&told);
}

static void test_torn_records_are_a_gap_that_ends_at_the_next(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    enter(&told, 1, TOP - 100);
    assert_int_equal(sj_assembler_add_loss(told.assembler, SJ_GAP_TORN, 2, 3, told.ticks), SJ_OK);
    leave(&told, 1, TOP - 100);
    finish(&told, false);
    assert_told(&told, 1, "+1 [3:2,3] - | ");
    close_story(&told);
}

static void test_ticks_are_extended_beyond_48_bits_and_long_sleeps(void **state)
{
    (void)state;
    const uint64_t base = (UINT64_C(5) << 48) - 100;
    story told = open_story();
    told.ticks = base;
    open_with(&told, 0);
    feed_at(&told, SJ_RECORD_ENTER, 1, TOP - 100, base + 50);
    feed_at(&told, SJ_RECORD_ENTER, 2, TOP - 200, base + 150);
    feed_at(&told, SJ_RECORD_LEAVE, 2, TOP - 200, base + (UINT64_C(3) << 46));
    finish(&told, false);
    assert_int_equal(told.store.blocks[0].header.first_ticks, base + 50);
    assert_int_equal(told.store.blocks[0].header.last_ticks, told.ticks + 10);
    close_story(&told);
}

static void test_blocks_are_reported_in_steps_of_the_clock_that_fit(void **state)
{
    (void)state;
    story told = open_story();
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = told.ticks,
                                          .clock_step = 10,
                                          .encoder = told.encoder};
    const sj_assembler_sink sink = block_store_sink(&told.store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told.assembler), SJ_OK);
    enter(&told, 1, TOP - 100);
    leave(&told, 1, TOP - 100);
    assert_int_equal(sj_assembler_flush(told.assembler, told.ticks), SJ_OK);
    enter(&told, 2, TOP - 100);
    feed_at(&told, SJ_RECORD_LEAVE, 2, TOP - 100, told.ticks + 11);
    finish(&told, false);
    assert_told(&told, 1, "+1 - | +2 - | ");
    assert_int_equal(told.store.blocks[0].header.clock_step, 10);
    assert_int_equal(told.store.blocks[1].header.clock_step, 1);
    close_story(&told);
}

static void test_a_thread_that_ends_unwinds_and_a_killed_one_does_not(void **state)
{
    (void)state;
    for (int orderly = 0; orderly < 2; orderly++) {
        story told = open_story();
        open_with(&told, 0);
        enter(&told, 1, TOP - 100);
        enter(&told, 2, TOP - 200);
        finish(&told, orderly != 0);
        assert_told(&told, 1, orderly ? "+1 +2 ~ ~ | " : "+1 +2 = = | ");
        const sj_block_header *header = &told.store.blocks[0].header;
        assert_int_equal(header->flags, SJ_BLOCK_LAST);
        assert_int_equal(header->end_depth, 0);
        close_story(&told);
    }
}

static void test_a_stack_of_a_million_calls_is_assembled(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    const uint64_t top = UINT64_C(0x7f0000000000);
    story told = open_story();
    const sj_assembler_options options = {.stack_low = top - (UINT64_C(1) << 30),
                                          .stack_high = top,
                                          .start_ticks = 1,
                                          .encoder = told.encoder};
    const sj_assembler_sink sink = block_store_sink(&told.store);
    assert_int_equal(sj_assembler_new(&options, &sink, &told.assembler), SJ_OK);
    for (uint64_t i = 0; i < DEPTH; i++) {
        enter(&told, 1 + (uint32_t)(i % 3), top - 64 * (i + 1));
    }
    for (uint64_t i = DEPTH; i-- > 0;) {
        leave(&told, 1 + (uint32_t)(i % 3), top - 64 * (i + 1));
    }
    finish(&told, false);
    sj_assembler_counters counters;
    sj_assembler_get_counters(told.assembler, &counters);
    assert_int_equal(counters.returned, DEPTH);
    uint64_t stored_frames = 0;
    for (size_t i = 0; i < told.store.count; i++) {
        const sj_block_header *header = &told.store.blocks[i].header;
        assert_true(header->open_depth - header->stack_frames <= SJ_BLOCK_MAX_INLINE_FRAMES);
        if (header->kind == SJ_BLOCK_DEEP_FRAMES) {
            stored_frames += header->open_depth - header->stack_frames;
        }
    }
    assert_true(stored_frames > DEPTH / 2);
    assert_true(stored_frames < DEPTH); /* each frame is stored at most once */
    close_story(&told);
}

static void test_many_dead_coroutines_are_retired(void **state)
{
    (void)state;
    story told = open_story();
    open_with(&told, 0);
    for (uint64_t i = 0; i < 5000; i++) {
        const uint64_t stack = OTHER + i * 0x10000;
        enter(&told, 1, stack);
        leave(&told, 1, stack);
    }
    finish(&told, false);
    size_t last = 0;
    for (size_t i = 0; i < told.store.count; i++) {
        last += (told.store.blocks[i].header.flags & SJ_BLOCK_LAST) != 0;
    }
    assert_int_equal(last, 5000);
    close_story(&told);
}

static sj_record random_record(uint64_t *random, uint64_t *ticks)
{
    const uint64_t dice = trace_random(random);
    *ticks += dice % 50;
    const uint64_t when = dice >> 8 & 15 ? *ticks : *ticks - (dice >> 12 & 63);
    const uint32_t kind = dice >> 20 & 31 ? (uint32_t)(dice >> 25 & 1) : (uint32_t)(dice >> 26 & 3);
    const uint64_t area = (uint64_t[]){TOP, TOP, TOP, OTHER, OTHER + 0x4000, THIRD}[dice % 6];
    const uint64_t stack = kind == 2 ? dice >> 40 & 7 : area - (dice >> 30 & 63) * 8;
    return trace_record((sj_record_kind)kind, (uint32_t)(dice >> 37 & 7), stack, when);
}

static void test_random_records_and_refusals_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        story told = open_story();
        told.store.refuse_per_million = seed % 3 == 0 ? 200000 : 0;
        told.store.random = seed;
        open_with(&told, seed % 2 ? 16 : 300);
        uint64_t random = seed;
        uint64_t ticks = 5000;
        for (int i = 0; i < 3000; i++) {
            const sj_record record = random_record(&random, &ticks);
            assert_int_equal(sj_assembler_feed(told.assembler, &record, 1, ticks), SJ_OK);
            if (i % 500 == 499) {
                assert_int_equal(sj_assembler_flush(told.assembler, ticks), SJ_OK);
            }
        }
        told.ticks = ticks;
        finish(&told, seed % 5 == 0);
        close_story(&told);
    }
}

static void test_every_failing_allocation_is_reported(void **state)
{
    (void)state;
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
        story told = open_story();
        const sj_assembler_options options = {
            .stack_low = LOW, .stack_high = TOP, .block_events = 64, .encoder = told.encoder};
        const sj_assembler_sink sink = block_store_sink(&told.store);
        uint64_t random = 1;
        uint64_t ticks = 5000;
        told.store.blocks = calloc(4096, sizeof(*told.store.blocks));
        told.store.capacity = 4096;
        fail_alloc_at(n);
        sj_status status = sj_assembler_new(&options, &sink, &told.assembler);
        for (int i = 0; i < 600 && status == SJ_OK; i++) {
            const sj_record record = random_record(&random, &ticks);
            status = sj_assembler_feed(told.assembler, &record, 1, ticks);
        }
        if (status == SJ_OK) {
            status = sj_assembler_end(told.assembler, ticks, true, 0);
        }
        failed = fail_alloc_stop();
        assert_true(status == SJ_OK || (status == SJ_ENOMEM && failed));
        close_story(&told);
    }
}

static void test_nonsense_options_are_refused(void **state)
{
    (void)state;
    block_store store = {0};
    const sj_assembler_sink sink = block_store_sink(&store);
    sj_assembler *assembler;
    const sj_assembler_options none = {0};
    assert_int_equal(sj_assembler_new(&none, &sink, &assembler), SJ_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_calls_return),
        cmocka_unit_test(test_a_throw_unwinds_what_it_skips),
        cmocka_unit_test(test_recursion_that_throws_to_its_own_outer_frame),
        cmocka_unit_test(test_a_longjmp_shows_at_the_next_entry),
        cmocka_unit_test(test_a_tail_call_is_an_exit_and_an_entry_at_one_address),
        cmocka_unit_test(test_exits_of_calls_open_before_recording_are_orphans),
        cmocka_unit_test(test_calls_open_before_recording_are_entered_at_its_beginning),
        cmocka_unit_test(test_other_stacks_are_reported_apart_among_records_that_come_together),
        cmocka_unit_test(test_a_call_open_above_the_stack_adopts_no_other_calls),
        cmocka_unit_test(test_a_call_open_below_the_stack_adopts_no_other_calls),
        cmocka_unit_test(test_coroutines_have_streams_of_their_own_and_unwind_nothing),
        cmocka_unit_test(test_adjacent_small_coroutine_stacks_are_reported_apart),
        cmocka_unit_test(test_a_handler_on_an_alternate_stack_has_its_own_stream),
        cmocka_unit_test(test_a_handler_between_clock_and_reservation_runs_before_the_call),
        cmocka_unit_test(test_a_clock_that_goes_back_keeps_the_order_of_records),
        cmocka_unit_test(test_dropped_records_are_numbered_and_truncate_what_ended_among_them),
        cmocka_unit_test(test_calls_entered_above_unknown_calls_are_uncertain),
        cmocka_unit_test(test_a_suspended_stack_gets_a_gap_when_it_is_resumed),
        cmocka_unit_test(test_a_wait_for_the_drain_flags_open_calls_and_loses_none),
        cmocka_unit_test(test_notes_of_unwinding_marks_and_pauses_are_applied),
        cmocka_unit_test(test_torn_records_are_a_gap_that_ends_at_the_next),
        cmocka_unit_test(test_ticks_are_extended_beyond_48_bits_and_long_sleeps),
        cmocka_unit_test(test_blocks_are_reported_in_steps_of_the_clock_that_fit),
        cmocka_unit_test(test_a_thread_that_ends_unwinds_and_a_killed_one_does_not),
        cmocka_unit_test(test_a_stack_of_a_million_calls_is_assembled),
        cmocka_unit_test(test_many_dead_coroutines_are_retired),
        cmocka_unit_test(test_random_records_and_refusals_add_up),
        cmocka_unit_test(test_every_failing_allocation_is_reported),
        cmocka_unit_test(test_nonsense_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
