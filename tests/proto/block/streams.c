#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void make_frames(const stream_shape *shape, uint64_t *random, uint64_t first_ticks,
                        sj_stack_frame *frames)
{
    for (uint32_t i = 0; i < shape->open_depth; i++) {
        const bool alike = shape->repetition > 50;
        frames[i].call_index = 1000 + i * (alike ? 1 : next_random(random) % 9);
        frames[i].start_ticks = first_ticks - shape->step * (uint64_t)(shape->open_depth - i) * 7;
        frames[i].child_ticks = alike ? 0 : next_random(random);
        frames[i].stack = UINT64_C(0x7ffd00000000) - 96 * (uint64_t)i;
        frames[i].function = 1 + (uint32_t)(alike ? 4 : next_random(random) % shape->functions);
        frames[i].flags = i == 0 ? SJ_CALL_BEFORE_RECORDING : 0;
    }
}

static void make_events(const stream_shape *shape, uint64_t *random, uint64_t ticks,
                        sj_event *events)
{
    uint64_t depth = shape->open_depth;
    size_t copied_from = 0;
    size_t to_copy = 0;
    for (size_t i = 0; i < shape->events; i++) {
        if (to_copy == 0 && i > 16 && next_random(random) % 100 < shape->repetition) {
            copied_from = next_random(random) % i;
            to_copy = next_random(random) % 64;
        }
        uint32_t function = (uint32_t)(next_random(random) % shape->functions) * 7 + 1;
        if (to_copy > 0) {
            to_copy--;
            function = events[copied_from++].function;
        } else if (next_random(random) % 2 == 0) {
            function = SJ_EVENT_LEAVE;
        }
        if (function == SJ_EVENT_LEAVE && depth == 0) {
            function = 1;
        }
        depth = function == SJ_EVENT_LEAVE ? depth - 1 : depth + 1;
        const uint64_t draw = next_random(random);
        const uint64_t gap = draw % 16 != 0 ? draw / 16 % 4 : draw / 16 % (shape->longest_gap + 1);
        ticks += gap * shape->step;
        events[i] = (sj_event){.ticks = ticks, .function = function};
    }
}

/* Makes some calls tail calls: mostly those of the same functions, as in programs. */
static void make_tail_calls(const stream_shape *shape, uint64_t *random, sj_event *events,
                            sj_stack_frame *frames)
{
    uint32_t leaves = 0;
    for (size_t i = 0; i < shape->events && shape->tail_calls != 0; i++) {
        const uint32_t draw = (uint32_t)(next_random(random) % 100);
        const uint32_t chance = draw % 8 == 0 ? draw : events[i].function * 37 % 100;
        if (events[i].function == SJ_EVENT_LEAVE) {
            leaves++;
            continue;
        }
        if (chance < shape->tail_calls) {
            events[i].tail_call = 1 + (leaves > 3 ? 3 : leaves);
        }
        leaves = 0;
    }
    for (uint32_t i = 1; i < shape->open_depth && shape->tail_calls != 0; i += 1 + i % 3) {
        frames[i].jumped_ticks = frames[i].start_ticks + i % 7;
    }
}

/* Makes most calls of some functions untimed, as in programs whose short functions are counted. */
static void make_untimed(const stream_shape *shape, uint64_t *random, sj_event *events,
                         sj_stack_frame *frames)
{
    for (size_t i = 0; i < shape->events && shape->untimed != 0; i++) {
        if (events[i].function % 3 == 1 && next_random(random) % 100 < shape->untimed) {
            events[i].tail_call |= SJ_EVENT_UNTIMED;
        }
    }
    for (uint32_t i = 0; i < shape->open_depth && shape->untimed != 0; i += 1 + i % 4) {
        frames[i].flags |= SJ_CALL_UNTIMED;
    }
}

static void make_endings(const stream_shape *shape, sj_block_input *input)
{
    sj_block_ending *endings = calloc(shape->endings + 1, sizeof(*endings));
    for (size_t i = 0; i < shape->events && input->ending_count < shape->endings; i++) {
        if (input->events[i].function == SJ_EVENT_LEAVE && i % 3 != 0) {
            endings[input->ending_count++] =
                (sj_block_ending){.event = (uint32_t)i, .ending = 1 + (uint32_t)(i % 3)};
        }
    }
    input->endings = endings;
}

static void make_gaps(const stream_shape *shape, uint64_t *random, uint64_t ticks,
                      sj_block_input *input)
{
    sj_gap *gaps = calloc(shape->gaps + 1, sizeof(*gaps));
    for (size_t i = 0; i < shape->gaps; i++) {
        gaps[i].before_event = (uint32_t)((shape->events + 1) * i / (shape->gaps + 1));
        gaps[i].reason = 1 + (uint32_t)(i % 7);
        gaps[i].calls = next_random(random) % 1000;
        gaps[i].events = gaps[i].calls * 2;
        gaps[i].start_ticks = ticks + i * 5 - 3;
        gaps[i].end_ticks = gaps[i].start_ticks + next_random(random) % 100;
    }
    input->gaps = gaps;
    input->gap_count = shape->gaps;
}

static void make_values(const stream_shape *shape, uint64_t *random, sj_block_input *input)
{
    static const char *const rules[] = {"large", "", "a rule's name"};
    static char letters[26][SJ_VALUE_TEXT_BYTES];
    sj_block_value *values = calloc(shape->values + 1, sizeof(*values));
    for (int i = 0; i < 26; i++) {
        memset(letters[i], 'a' + i, sizeof(letters[i]));
    }
    uint64_t calls = input->header.first_call;
    for (size_t i = 0; i < shape->events; i++) {
        calls += input->events[i].function != SJ_EVENT_LEAVE;
    }
    for (size_t i = 0; i < shape->values; i++) {
        sj_block_value *value = &values[i];
        const uint32_t kind = 1 + (uint32_t)(i % SJ_VALUE_STRING);
        value->call_index = next_random(random) % (calls + 1);
        value->call_index -= value->call_index == calls ? 1 : 0;
        value->descriptor = sj_value_descriptor((uint32_t)(i % 9), kind);
        value->rule = (uint16_t)(i % 4);
        if (kind == SJ_VALUE_STRING) {
            value->note = (uint8_t)(i / 2 % 4);
            value->text_bytes = (uint16_t)(next_random(random) % (SJ_VALUE_TEXT_BYTES + 1));
            value->text = letters[i % 26];
        } else {
            value->bits = sj_value_narrow(kind, next_random(random) * *random);
        }
    }
    input->values = values;
    input->value_count = shape->values;
    input->rules = rules;
    input->rule_count = shape->values != 0 ? 3 : 0;
}

void stream_make(const stream_shape *shape, sj_block_input *input)
{
    const uint64_t first_ticks = UINT64_C(1) << 50;
    uint64_t random = shape->seed * 2654435761U + 88172645463325252U;
    sj_stack_frame *frames = calloc(shape->open_depth + 1U, sizeof(*frames));
    sj_event *events = calloc(shape->events + 1, sizeof(*events));
    *input = (sj_block_input){.header = {.kind = SJ_BLOCK_CALLS,
                                         .stream = 3,
                                         .first_event = 77,
                                         .first_call = 33,
                                         .event_count = (uint32_t)shape->events,
                                         .first_ticks = first_ticks,
                                         .last_ticks = first_ticks,
                                         .clock_step = shape->step,
                                         .open_depth = shape->open_depth}};
    memset(input->header.session.bytes, 0x5a, SJ_SESSION_ID_BYTES);
    make_frames(shape, &random, first_ticks, frames);
    make_events(shape, &random, first_ticks, events);
    make_tail_calls(shape, &random, events, frames);
    make_untimed(shape, &random, events, frames);
    input->frames = frames;
    input->events = events;
    make_endings(shape, input);
    make_gaps(shape, &random, first_ticks, input);
    make_values(shape, &random, input);
}

void stream_free(sj_block_input *input)
{
    free((void *)(uintptr_t)input->frames);
    free((void *)(uintptr_t)input->events);
    free((void *)(uintptr_t)input->endings);
    free((void *)(uintptr_t)input->gaps);
    free((void *)(uintptr_t)input->values);
}

static void check_events(const sj_block_input *input, const sj_block *block, unsigned want)
{
    uint32_t calls = 0;
    const unsigned listed = SJ_WANT_STRUCTURE | SJ_WANT_TAIL_CALLS;
    size_t tail_calls = 0;
    for (size_t i = 0; i < block->header.event_count; i++) {
        const sj_event *event = &input->events[i];
        const uint32_t tail_call = event->tail_call & ~(uint32_t)SJ_EVENT_UNTIMED;
        const bool is_untimed = tail_call != event->tail_call;
        if ((want & listed) == listed && tail_call != 0) {
            assert_true(tail_calls < block->tail_call_count);
            assert_int_equal(block->tail_calls[tail_calls].event, i);
            assert_int_equal(block->tail_calls[tail_calls++].ended, tail_call - 1);
        }
        calls += event->function != SJ_EVENT_LEAVE;
        if ((want & SJ_WANT_STRUCTURE) != 0) {
            const uint32_t symbol =
                block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
            assert_true(symbol <= block->function_count);
            assert_int_equal(symbol == 0 ? SJ_EVENT_LEAVE : block->functions[symbol - 1],
                             event->function);
            assert_int_equal(block->tails == NULL ? 0 : block->tails[symbol], tail_call);
            assert_int_equal(block->untimed == NULL ? 0 : block->untimed[symbol], is_untimed);
        }
        if ((want & SJ_WANT_TIMES) != 0) {
            assert_true(block->ticks[i] == event->ticks);
        }
    }
    assert_int_equal(block->header.call_count, calls);
    assert_int_equal(block->tail_call_count, tail_calls);
}

static void check_value(const sj_block_value *expected, const sj_block_value *found)
{
    assert_true(found->call_index == expected->call_index && found->bits == expected->bits);
    assert_true(found->descriptor == expected->descriptor && found->note == expected->note);
    assert_int_equal(found->rule, expected->rule);
    assert_int_equal(found->text_bytes, expected->text_bytes);
    if (expected->text_bytes != 0) {
        assert_memory_equal(found->text, expected->text, expected->text_bytes);
    }
}

void stream_check(const sj_block_input *input, const sj_block *block, unsigned want)
{
    const sj_block_header *header = &block->header;
    assert_int_equal(header->event_count, input->header.event_count);
    assert_int_equal(header->stream, input->header.stream);
    assert_true(header->first_event == input->header.first_event);
    assert_true(header->first_call == input->header.first_call);
    assert_memory_equal(header->session.bytes, input->header.session.bytes, SJ_SESSION_ID_BYTES);
    assert_int_equal(header->open_depth, input->header.open_depth);
    const uint32_t frames = input->header.open_depth - input->header.stack_frames;
    assert_int_equal(block->frame_count, frames);
    for (uint32_t i = 0; i < frames; i++) {
        assert_memory_equal(&block->frames[i], &input->frames[i], sizeof(sj_stack_frame));
    }
    assert_int_equal(block->ending_count, input->ending_count);
    for (size_t i = 0; i < input->ending_count; i++) {
        assert_memory_equal(&block->endings[i], &input->endings[i], sizeof(sj_block_ending));
    }
    assert_int_equal(block->gap_count, input->gap_count);
    for (size_t i = 0; i < input->gap_count; i++) {
        assert_memory_equal(&block->gaps[i], &input->gaps[i], sizeof(sj_gap));
    }
    assert_int_equal(block->value_count, input->value_count);
    for (size_t i = 0; i < input->value_count; i++) {
        check_value(&input->values[i], &block->values[i]);
    }
    assert_int_equal(block->rules->count, input->rule_count);
    for (size_t i = 0; i < input->rule_count; i++) {
        assert_string_equal(block->rules->names[i], input->rules[i]);
    }
    check_events(input, block, want);
}
