/* Values reach their own call, whichever records come in between, and never another call. */
#include "agent/assembler/assembler.h"
#include "agent/assembler/value_queue.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TOP = 0x1100000, LOW = 0x1000000, FIRST = 0x10ffff8, SECOND = 0x10fff00 };

static sj_record value_record(uint32_t function, uint64_t stack, sj_record_part part,
                              uint8_t descriptor, uint64_t bits)
{
    const uint32_t word =
        ((uint32_t)stack & SJ_RECORD_VALUE_STACK_MASK) | part | (uint32_t)descriptor << 24;
    const uint32_t tag = (uint32_t)SJ_RECORD_VALUE << SJ_RECORD_FUNCTION_BITS | function;
    sj_record record;
    memcpy(record.bytes, &bits, sizeof(bits));
    memcpy(record.bytes + 8, &word, sizeof(word));
    memcpy(record.bytes + 12, &tag, sizeof(tag));
    return record;
}

static bool put(sj_value_queue *queue, uint32_t function, uint64_t stack, sj_record_part part,
                uint8_t descriptor, uint64_t bits)
{
    const sj_record record = value_record(function, stack, part, descriptor, bits);
    return sj_value_queue_add(queue, &record);
}

static uint64_t eight(const char *text)
{
    uint64_t bits = 0;
    memcpy(&bits, text, strlen(text) < 8 ? strlen(text) : 8);
    return bits;
}

static void test_values_of_two_calls_stay_apart(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    sj_block_value value;
    const uint8_t first = sj_value_descriptor(1, SJ_VALUE_INT);
    const uint8_t second = sj_value_descriptor(2, SJ_VALUE_UINT);
    const uint8_t result = sj_value_descriptor(0, SJ_VALUE_BOOL);
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, first, UINT64_C(0xdead0000ffffffff)));
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, second, UINT64_C(0xdead0000ffffffff)));
    /* These are values of a handler, and of a deeper call of the same function. */
    assert_true(put(&queue, 8, SECOND, SJ_PART_VALUE, first, 3));
    assert_true(put(&queue, 7, SECOND, SJ_PART_VALUE, first, 4));
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, result, 0x100));
    assert_true(sj_value_queue_pop(&queue, 8, SECOND, true, &value));
    assert_int_equal(value.bits, 3);
    assert_false(sj_value_queue_pop(&queue, 8, SECOND, true, &value));
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(value.descriptor == first && (int64_t)value.bits == -1);
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(value.descriptor == second && value.bits == UINT32_MAX);
    assert_false(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, false, &value));
    assert_true(value.descriptor == result && value.bits == 0);
    assert_int_equal(queue.count, 1);
    sj_value_queue_deinit(&queue);
}

static void test_a_change_follows_what_it_changed_and_names_its_rule(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    sj_block_value value;
    const uint8_t first = sj_value_descriptor(1, SJ_VALUE_INT);
    const uint8_t result = sj_value_descriptor(0, SJ_VALUE_INT);
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, first, 3));
    assert_true(put(&queue, 7, FIRST, SJ_PART_CHANGED, first, 5));
    assert_true(put(&queue, 7, FIRST, SJ_PART_RULE, first, 2));
    /* The last change stays without a rule: the first rule number is too large, and the second rule
     * belongs to another call. */
    assert_true(put(&queue, 7, FIRST, SJ_PART_CHANGED, result, (uint64_t)-1));
    assert_false(put(&queue, 7, FIRST, SJ_PART_RULE, result, SJ_VALUE_RULES));
    assert_false(put(&queue, 7, SECOND, SJ_PART_RULE, first, 2));
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(value.bits == 3 && value.rule == 0);
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(value.bits == 5 && value.rule == 3 && value.descriptor == first);
    assert_false(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_false(sj_value_queue_pop(&queue, 7, FIRST, false, &value));
    assert_int_equal(queue.count, 0);
    sj_value_queue_deinit(&queue);
}

static void test_texts_are_put_together(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    sj_block_value value;
    const uint8_t text = sj_value_descriptor(1, SJ_VALUE_STRING);
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, text, 11));
    assert_true(put(&queue, 7, FIRST, SJ_PART_TEXT, text, eight("twelve b")));
    assert_true(put(&queue, 9, SECOND, SJ_PART_VALUE, text, (uint64_t)SJ_VALUE_NULL << 8));
    assert_true(put(&queue, 7, FIRST, SJ_PART_TEXT, text, eight("yte")));
    assert_false(put(&queue, 7, FIRST, SJ_PART_TEXT, text, eight("more")));
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_int_equal(value.text_bytes, 11);
    assert_memory_equal(value.text, "twelve byte", 11);
    assert_true(sj_value_queue_pop(&queue, 9, SECOND, true, &value));
    assert_true(value.note == SJ_VALUE_NULL && value.text_bytes == 0);
    /* A text without its end is not a value. */
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, text, 9 | (uint64_t)SJ_VALUE_CUT << 8));
    assert_true(put(&queue, 7, FIRST, SJ_PART_TEXT, text, eight("twelve b")));
    assert_false(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_int_equal(queue.count, 0);
    assert_int_equal(queue.lost, 1);
    sj_value_queue_deinit(&queue);
}

/* Adds a text of `bytes` equal letters. */
static void put_text(sj_value_queue *queue, uint32_t function, uint8_t descriptor, char letter,
                     size_t bytes)
{
    uint64_t word;
    memset(&word, letter, sizeof(word));
    assert_true(put(queue, function, FIRST, SJ_PART_VALUE, descriptor,
                    sj_value_text_head(bytes, SJ_VALUE_WHOLE)));
    for (size_t i = 0; i < bytes; i += sizeof(word)) {
        assert_true(put(queue, function, FIRST, SJ_PART_TEXT, descriptor, word));
    }
}

static bool is_text(const sj_block_value *value, char letter, size_t bytes)
{
    bool is = value->text_bytes == bytes;
    for (size_t i = 0; is && i < bytes; i++) {
        is = value->text[i] == letter;
    }
    return is;
}

/* A waiting text stays intact, however many other texts come and go. The memory of texts is
 * bounded. */
static void test_long_texts_wait_unharmed(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    sj_block_value first;
    sj_block_value second;
    const uint8_t text = sj_value_descriptor(1, SJ_VALUE_STRING);
    const uint8_t other = sj_value_descriptor(2, SJ_VALUE_STRING);
    put_text(&queue, 7, text, 'a', SJ_VALUE_TEXT_MOST);
    for (uint32_t i = 0; i < 1000; i++) {
        put_text(&queue, 8, text, 'b', SJ_VALUE_TEXT_MOST - i);
        put_text(&queue, 8, other, 'c', 1 + i);
        assert_true(sj_value_queue_pop(&queue, 8, FIRST, true, &first));
        assert_true(sj_value_queue_pop(&queue, 8, FIRST, true, &second));
        assert_true(is_text(&first, 'b', SJ_VALUE_TEXT_MOST - i) && is_text(&second, 'c', 1 + i));
    }
    assert_true(queue.texts.total_bytes <= 5 * SJ_VALUE_QUEUE * SJ_VALUE_TEXT_MOST);
    assert_true(sj_value_queue_pop(&queue, 7, FIRST, true, &first));
    assert_true(is_text(&first, 'a', SJ_VALUE_TEXT_MOST));
    sj_value_queue_deinit(&queue);
}

static void test_values_without_a_call_are_replaced(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    sj_block_value value;
    const uint8_t first = sj_value_descriptor(1, SJ_VALUE_LONG);
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, first, 1));
    assert_true(put(&queue, 7, FIRST, SJ_PART_VALUE, first, 2));
    assert_int_equal(queue.count, 1);
    for (uint32_t i = 0; i < SJ_VALUE_QUEUE; i++) {
        assert_true(put(&queue, 100 + i, FIRST, SJ_PART_VALUE, first, i));
    }
    assert_int_equal(queue.count, SJ_VALUE_QUEUE);
    assert_int_equal(queue.lost, 1);
    assert_false(sj_value_queue_pop(&queue, 7, FIRST, true, &value));
    assert_true(sj_value_queue_pop(&queue, 100, FIRST, true, &value));
    sj_value_queue_deinit(&queue);
}

static void test_records_that_are_no_values_are_refused(void **state)
{
    (void)state;
    sj_value_queue queue = {0};
    const uint8_t text = sj_value_descriptor(1, SJ_VALUE_STRING);
    assert_false(put(&queue, 7, FIRST, SJ_PART_RECEIVER, 0, 1));
    assert_false(put(&queue, 7, FIRST, SJ_PART_TEXT, text, 1));
    assert_false(put(&queue, 7, FIRST, SJ_PART_VALUE, 0, 1));
    assert_false(put(&queue, 7, FIRST, SJ_PART_VALUE, 0xf1, 1));
    assert_false(put(&queue, 7, FIRST, SJ_PART_VALUE, text,
                     sj_value_text_head(SJ_VALUE_TEXT_MOST + 1, SJ_VALUE_WHOLE)));
    assert_false(put(&queue, 7, FIRST, SJ_PART_VALUE, text, UINT64_C(4) << 8));
    assert_int_equal(queue.count, 0);
    sj_value_queue_deinit(&queue);
}

enum { NUMBERED = 9 };

/* Only NUMBERED has rules: numbers 0 and 1. */
static sj_rule_set keep_numbered(void *context, uint32_t function, const sj_block_value *value,
                                 uint64_t ticks)
{
    sj_rule_set kept = {0};
    (void)context;
    (void)value;
    (void)ticks;
    if (function == NUMBERED) {
        sj_rule_set_add(&kept, 0);
        sj_rule_set_add(&kept, 1);
    }
    return kept;
}

/* A thread whose calls all have a value at the entry and one at the exit. */
typedef struct valued_thread {
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    block_store store;
    uint64_t ticks;
} valued_thread;

static void open_judged_thread(valued_thread *thread, uint32_t block_events, sj_value_rules *rules,
                               sj_rule_set (*judge)(void *context, const sj_assembled_call *call))
{
    *thread = (valued_thread){.ticks = 1000};
    assert_int_equal(sj_block_encoder_new(&thread->encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = LOW,
                                          .stack_high = TOP,
                                          .start_ticks = thread->ticks,
                                          .block_events = block_events,
                                          .value_rules = rules,
                                          .encoder = thread->encoder};
    sj_assembler_sink sink = block_store_sink(&thread->store);
    sink.value = keep_numbered;
    sink.call = judge;
    assert_int_equal(sj_assembler_new(&options, &sink, &thread->assembler), SJ_OK);
}

static void open_typed_thread(valued_thread *thread, uint32_t block_events, sj_value_rules *rules)
{
    open_judged_thread(thread, block_events, rules, NULL);
}

static void open_thread(valued_thread *thread, uint32_t block_events)
{
    open_typed_thread(thread, block_events, NULL);
}

static void feed(valued_thread *thread, sj_record record)
{
    thread->ticks += 10;
    assert_int_equal(sj_assembler_feed(thread->assembler, &record, 1, thread->ticks), SJ_OK);
}

static void feed_event(valued_thread *thread, sj_record_kind kind, uint32_t function,
                       uint64_t stack)
{
    feed(thread, trace_record(kind, function, stack, thread->ticks + 10));
}

static void feed_value(valued_thread *thread, uint32_t position, uint64_t stack, uint64_t bits)
{
    feed(thread,
         value_record(7, stack, SJ_PART_VALUE, sj_value_descriptor(position, SJ_VALUE_LONG), bits));
}

static void finish(valued_thread *thread, sj_assembler_counters *counters)
{
    assert_int_equal(sj_assembler_end(thread->assembler, thread->ticks + 10, true, 0), SJ_OK);
    sj_assembler_get_counters(thread->assembler, counters);
    assert_null(assembler_check(counters, &thread->store));
}

static void close_thread(valued_thread *thread)
{
    sj_assembler_free(thread->assembler);
    sj_block_encoder_free(thread->encoder);
    block_store_free(&thread->store);
}

/* Calls `check` for each value of the blocks, in order; returns their number. */
static size_t each_value(const valued_thread *thread,
                         void (*check)(const sj_block_value *value, size_t number))
{
    size_t count = 0;
    sj_block_decoder *decoder;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    for (size_t i = 0; i < thread->store.count; i++) {
        const stored_block *stored = &thread->store.blocks[i];
        sj_block block;
        assert_int_equal(
            sj_block_decode(decoder, (sj_slice){stored->data, stored->size}, SJ_WANT_ALL, &block),
            SJ_OK);
        for (size_t j = 0; j < block.value_count; j++) {
            check(&block.values[j], count++);
        }
    }
    sj_block_decoder_free(decoder);
    return count;
}

enum { DEPTH = 50, FIELDS = 14 };

static void check_nested(const sj_block_value *value, size_t number)
{
    const bool is_entry = number < DEPTH;
    const uint64_t call = is_entry ? number : 2 * DEPTH - 1 - number;
    assert_int_equal(value->call_index, call);
    assert_int_equal(sj_value_position(value->descriptor), is_entry ? 1 : 0);
    assert_int_equal(value->bits, is_entry ? call : call * 100);
    assert_int_equal(value->rule, 0);
}

/* The exits are some blocks after the entries. */
static void test_values_know_their_calls_over_many_blocks(void **state)
{
    (void)state;
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 7);
    for (uint64_t i = 0; i < DEPTH; i++) {
        feed_value(&thread, 1, FIRST - 64 * i, i);
        feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST - 64 * i);
    }
    for (uint64_t i = DEPTH; i-- > 0;) {
        feed_value(&thread, 0, FIRST - 64 * i, i * 100);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST - 64 * i);
    }
    finish(&thread, &counters);
    assert_true(counters.values == 2 * DEPTH && counters.value_records == 2 * DEPTH);
    assert_true(thread.store.count > 10);
    assert_int_equal(each_value(&thread, check_nested), 2 * DEPTH);
    close_thread(&thread);
}

static void check_second(const sj_block_value *value, size_t number)
{
    assert_int_equal(number, 0);
    assert_true(value->call_index == 5 && value->bits == 22);
}

/* Waiting values are lost with lost records, because their entry may be among those. */
static void test_no_value_crosses_a_gap(void **state)
{
    (void)state;
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 0);
    feed_value(&thread, 1, FIRST, 11);
    feed_event(&thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, 4);
    feed_event(&thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 8);
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    feed_value(&thread, 1, FIRST, 22);
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    finish(&thread, &counters);
    assert_int_equal(each_value(&thread, check_second), 1);
    assert_int_equal(counters.lost_values, 1);
    close_thread(&thread);
}

/* Handlers interrupt each other between a value and its entry. There are more of them than values
 * can wait. */
static void test_values_beyond_the_capacity_are_counted(void **state)
{
    (void)state;
    enum { NESTED = SJ_VALUE_QUEUE + 30 };
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 0);
    for (uint64_t i = 0; i < NESTED; i++) {
        feed_value(&thread, 1, FIRST - 64 * i, i);
    }
    for (uint64_t i = NESTED; i-- > 0;) {
        feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST - 64 * i);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST - 64 * i);
    }
    finish(&thread, &counters);
    assert_int_equal(counters.values, SJ_VALUE_QUEUE);
    assert_int_equal(counters.lost_values, NESTED - SJ_VALUE_QUEUE);
    close_thread(&thread);
}

/* The result of a call without an entry is dropped and uses no capacity. */
static void test_values_of_exits_without_a_call_are_dropped(void **state)
{
    (void)state;
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 0);
    for (uint64_t i = 0; i < 3 * SJ_VALUE_QUEUE; i++) {
        feed_value(&thread, 0, LOW + 64 * (i + 1), i);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, LOW + 64 * (i + 1));
    }
    finish(&thread, &counters);
    assert_int_equal(counters.orphan_exits, 3 * SJ_VALUE_QUEUE);
    assert_int_equal(counters.lost_values, 0);
    close_thread(&thread);
}

static void check_many(const sj_block_value *value, size_t number)
{
    assert_true(value->call_index == number && value->bits == number);
}

static void test_blocks_are_cut_before_they_have_too_many_values(void **state)
{
    (void)state;
    enum { CALLS = 2 * SJ_BLOCK_MAX_VALUES };
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 0);
    for (uint64_t i = 0; i < CALLS; i++) {
        feed_value(&thread, 1, FIRST, i);
        feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    }
    finish(&thread, &counters);
    assert_int_equal(each_value(&thread, check_many), CALLS);
    close_thread(&thread);
}

static void check_fields(const sj_block_value *value, size_t number)
{
    assert_true(value->bits == number % FIELDS && value->call_index == number / FIELDS);
}

/* Each call stores all fields of a structure from one place. */
static void test_blocks_are_cut_before_they_have_too_many_typed_values(void **state)
{
    (void)state;
    enum { CALLS = 2 * SJ_BLOCK_MAX_VALUES / FIELDS };
    const uint8_t place = sj_value_descriptor(1, SJ_VALUE_STRING);
    valued_thread thread;
    sj_assembler_counters counters;
    sj_value_rules *rules;
    sj_typed_function *typed = calloc(1, sizeof(*typed));
    assert_non_null(typed);
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    assert_int_equal(sj_value_rules_need_types(rules), SJ_OK);
    for (uint32_t i = 0; i < FIELDS; i++) {
        typed->values[typed->count++] =
            (sj_typed_value){.place = place,
                             .descriptor = sj_value_descriptor(1 + i, SJ_VALUE_INT),
                             .from_byte = (uint16_t)(4 * i),
                             .bytes = 4,
                             .is_behind = true};
    }
    sj_value_rules_set_typed(rules, 7, typed);
    open_typed_thread(&thread, 0, rules);
    for (uint64_t i = 0; i < CALLS; i++) {
        feed(&thread, value_record(7, FIRST, SJ_PART_VALUE, place,
                                   sj_value_text_head(4 * FIELDS, SJ_VALUE_WHOLE)));
        for (uint64_t word = 0; word < FIELDS; word += 2) {
            feed(&thread, value_record(7, FIRST, SJ_PART_TEXT, place, word | (word + 1) << 32));
        }
        feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    }
    finish(&thread, &counters);
    assert_int_equal(each_value(&thread, check_fields), CALLS * FIELDS);
    close_thread(&thread);
    sj_value_rules_free(rules);
}

static void check_known(const sj_block_value *value, size_t number)
{
    assert_true(number == 0 && value->bits == 6);
}

/* Two rules match a value that the function's types do not describe. The value is counted as lost
 * once. */
static void test_values_that_types_do_not_know_are_counted(void **state)
{
    (void)state;
    const uint8_t known = sj_value_descriptor(2, SJ_VALUE_LONG);
    valued_thread thread;
    sj_assembler_counters counters;
    sj_value_rules *rules;
    sj_typed_function *typed = calloc(1, sizeof(*typed));
    assert_non_null(typed);
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    assert_int_equal(sj_value_rules_need_types(rules), SJ_OK);
    typed->values[typed->count++] =
        (sj_typed_value){.place = known, .descriptor = known, .bytes = 8};
    sj_value_rules_set_typed(rules, NUMBERED, typed);
    rules->count = 2;
    open_typed_thread(&thread, 0, rules);
    feed(&thread,
         value_record(NUMBERED, FIRST, SJ_PART_VALUE, sj_value_descriptor(1, SJ_VALUE_LONG), 5));
    feed(&thread, value_record(NUMBERED, FIRST, SJ_PART_VALUE, known, 6));
    feed_event(&thread, SJ_RECORD_ENTER, NUMBERED, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, NUMBERED, FIRST);
    finish(&thread, &counters);
    assert_int_equal(counters.lost_values, 1);
    assert_int_equal(each_value(&thread, check_known), 1);
    close_thread(&thread);
    sj_value_rules_free(rules);
}

static void check_of_jumped(const sj_block_value *value, size_t number)
{
    static const uint64_t calls[] = {0, 4};
    static const uint64_t results[] = {5, 7};
    assert_true(number < sizeof(calls) / sizeof(calls[0]));
    assert_int_equal(value->call_index, calls[number]);
    assert_int_equal(value->bits, results[number]);
}

/* The result of a call that jumped is known when its callee returns. */
static void test_a_result_is_that_of_the_call_that_has_jumped_there(void **state)
{
    (void)state;
    enum { JUMPING = 3, BETWEEN = 8 };
    const uint8_t place = sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_LONG);
    valued_thread thread;
    sj_assembler_counters counters;
    sj_value_rules *rules;
    sj_typed_function *typed = calloc(1, sizeof(*typed));
    assert_non_null(typed);
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    assert_int_equal(sj_value_rules_need_types(rules), SJ_OK);
    typed->values[typed->count++] =
        (sj_typed_value){.place = place, .descriptor = place, .bytes = 8};
    sj_value_rules_set_typed(rules, JUMPING, typed);
    open_typed_thread(&thread, 0, rules);
    feed_event(&thread, SJ_RECORD_ENTER, JUMPING, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, JUMPING, FIRST + SJ_STACK_TAIL_CALL);
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed_value(&thread, SJ_VALUE_RESULT, FIRST, 5);
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    /* JUMPING returns, so the result of the next call at this address is not its result. */
    feed_event(&thread, SJ_RECORD_ENTER, JUMPING, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, JUMPING, FIRST);
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed_value(&thread, SJ_VALUE_RESULT, FIRST, 6);
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    /* The number of calls that have jumped does not matter. */
    feed_event(&thread, SJ_RECORD_ENTER, JUMPING, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, JUMPING, FIRST + SJ_STACK_TAIL_CALL);
    feed_event(&thread, SJ_RECORD_ENTER, BETWEEN, FIRST);
    feed_event(&thread, SJ_RECORD_LEAVE, BETWEEN, FIRST + SJ_STACK_TAIL_CALL);
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed_value(&thread, SJ_VALUE_RESULT, FIRST, 7);
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    finish(&thread, &counters);
    assert_int_equal(each_value(&thread, check_of_jumped), 2);
    close_thread(&thread);
    sj_value_rules_free(rules);
}

enum { JUMPED_ARGUMENT = 40, JUMPED_RESULT = 5 };

static bool has(const sj_assembled_call *call, uint32_t position, uint64_t bits)
{
    for (size_t i = 0; i < call->value_count; i++) {
        if (call->values[i].descriptor == sj_value_descriptor(position, SJ_VALUE_LONG)) {
            return call->values[i].bits == bits;
        }
    }
    return false;
}

/* Matches rule 0 only if a call has both its argument and its result at the exit. */
static sj_rule_set meet_both(void *context, const sj_assembled_call *call)
{
    sj_rule_set met = {0};
    (void)context;
    if (call->at_exit && has(call, 1, JUMPED_ARGUMENT) &&
        has(call, SJ_VALUE_RESULT, JUMPED_RESULT)) {
        sj_rule_set_add(&met, 0);
    }
    return met;
}

static size_t hits;

static void count_hit(const sj_block_value *value, size_t number)
{
    (void)number;
    if (value->rule == 1) {
        assert_int_equal(value->call_index, 0);
        assert_int_equal(value->bits, JUMPED_ARGUMENT);
        hits++;
    }
}

/* Although the call has a cost, its rule waits for the result. */
static void test_a_call_that_jumps_is_judged_with_its_result_though_it_has_costs(void **state)
{
    (void)state;
    enum { RETURNING = 3 };
    const uint8_t argument = sj_value_descriptor(1, SJ_VALUE_LONG);
    valued_thread thread;
    sj_assembler_counters counters;
    sj_value_rules *rules;
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    rules->items[0].descriptor = rules->items[0].stored = argument;
    rules->items[0].condition_count = 1;
    rules->count = 1;
    open_judged_thread(&thread, 0, rules, meet_both);
    feed_value(&thread, 1, FIRST, JUMPED_ARGUMENT);
    feed(&thread, value_record(7, FIRST, SJ_PART_VALUE, sj_value_descriptor(1, SJ_VALUE_COST), 1));
    feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
    feed(&thread, value_record(7, FIRST, SJ_PART_VALUE, sj_value_descriptor(0, SJ_VALUE_COST), 9));
    feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST + SJ_STACK_TAIL_CALL);
    feed_event(&thread, SJ_RECORD_ENTER, RETURNING, FIRST);
    feed(&thread, value_record(RETURNING, FIRST, SJ_PART_VALUE,
                               sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_LONG), JUMPED_RESULT));
    feed_event(&thread, SJ_RECORD_LEAVE, RETURNING, FIRST);
    finish(&thread, &counters);
    hits = 0;
    assert_true(each_value(&thread, count_hit) > 1);
    assert_int_equal(hits, 1);
    close_thread(&thread);
    sj_value_rules_free(rules);
}

static void check_any(const sj_block_value *value, size_t number)
{
    (void)number;
    assert_int_equal(value->bits, value->call_index);
}

static void test_values_of_blocks_that_are_refused_are_counted(void **state)
{
    (void)state;
    enum { CALLS = 2000 };
    valued_thread thread;
    sj_assembler_counters counters;
    open_thread(&thread, 20);
    thread.store.refuse_per_million = 300000;
    for (uint64_t i = 0; i < CALLS; i++) {
        feed_value(&thread, 1, FIRST, i);
        feed_event(&thread, SJ_RECORD_ENTER, 7, FIRST);
        feed_event(&thread, SJ_RECORD_LEAVE, 7, FIRST);
    }
    finish(&thread, &counters);
    assert_true(counters.refused_values > 0);
    assert_int_equal(counters.values + counters.refused_values, CALLS);
    assert_int_equal(each_value(&thread, check_any), counters.values);
    close_thread(&thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_two_calls_stay_apart),
        cmocka_unit_test(test_a_change_follows_what_it_changed_and_names_its_rule),
        cmocka_unit_test(test_texts_are_put_together),
        cmocka_unit_test(test_long_texts_wait_unharmed),
        cmocka_unit_test(test_values_without_a_call_are_replaced),
        cmocka_unit_test(test_records_that_are_no_values_are_refused),
        cmocka_unit_test(test_values_know_their_calls_over_many_blocks),
        cmocka_unit_test(test_no_value_crosses_a_gap),
        cmocka_unit_test(test_values_beyond_the_capacity_are_counted),
        cmocka_unit_test(test_values_of_exits_without_a_call_are_dropped),
        cmocka_unit_test(test_blocks_are_cut_before_they_have_too_many_values),
        cmocka_unit_test(test_blocks_are_cut_before_they_have_too_many_typed_values),
        cmocka_unit_test(test_values_that_types_do_not_know_are_counted),
        cmocka_unit_test(test_a_result_is_that_of_the_call_that_has_jumped_there),
        cmocka_unit_test(test_a_call_that_jumps_is_judged_with_its_result_though_it_has_costs),
        cmocka_unit_test(test_values_of_blocks_that_are_refused_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
