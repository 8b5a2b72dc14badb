/* A stream is the same after encoding and decoding. A stream that cannot be encoded truthfully is
 * refused. */
#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct codec_pair {
    sj_block_encoder *encoder;
    sj_block_decoder *decoder;
    uint8_t *bytes;
    size_t size;
} codec_pair;

static int set_up(void **state)
{
    codec_pair *made = calloc(1, sizeof(*made));
    *state = made;
    return made == NULL || sj_block_encoder_new(&made->encoder) != SJ_OK ||
           sj_block_decoder_new(&made->decoder) != SJ_OK;
}

static int tear_down(void **state)
{
    codec_pair *codec = *state;
    sj_block_encoder_free(codec->encoder);
    sj_block_decoder_free(codec->decoder);
    free(codec->bytes);
    free(codec);
    return 0;
}

static sj_status encode(codec_pair *codec, const sj_block_input *input)
{
    free(codec->bytes);
    const size_t bound = sj_block_bound(input);
    codec->bytes = malloc(bound);
    return sj_block_encode(codec->encoder, input, codec->bytes, bound, &codec->size);
}

static void decode(codec_pair *codec, unsigned want, sj_block *block)
{
    const sj_slice bytes = {.data = codec->bytes, .size = codec->size};
    assert_int_equal(sj_block_decode(codec->decoder, bytes, want, block), SJ_OK);
}

static bool has_open_ending(const sj_block_input *input)
{
    for (size_t i = 0; i < input->ending_count; i++) {
        if (input->endings[i].ending == SJ_ENDING_OPEN) {
            return true;
        }
    }
    return false;
}

static void round_trip(codec_pair *codec, const stream_shape *shape)
{
    sj_block_input input;
    sj_block block;
    stream_make(shape, &input);
    assert_int_equal(encode(codec, &input), SJ_OK);
    for (unsigned want = 0; want <= (SJ_WANT_ALL | SJ_WANT_TAIL_CALLS); want++) {
        decode(codec, want, &block);
        stream_check(&input, &block, want);
        assert_int_equal(block.header.version, has_open_ending(&input) ? 2 : 1);
        assert_int_equal(block.symbols16 != NULL || block.symbols32 != NULL,
                         (want & SJ_WANT_STRUCTURE) != 0);
        assert_int_equal(block.ticks != NULL, (want & SJ_WANT_TIMES) != 0);
    }
    stream_free(&input);
}

static void streams_of_every_small_size_round_trip(void **state)
{
    for (size_t events = 0; events < 70; events++) {
        for (uint32_t depth = 0; depth < 3; depth++) {
            round_trip(*state, &(stream_shape){.seed = events + 1,
                                               .events = events,
                                               .open_depth = depth,
                                               .functions = 3,
                                               .repetition = 30,
                                               .step = 26,
                                               .longest_gap = 40,
                                               .endings = 4,
                                               .gaps = events % 3,
                                               .values = events % 40,
                                               .tail_calls = events % 3 == 0 ? events % 90 : 0,
                                               .untimed = events % 5 == 0 ? events : 0});
        }
    }
}

static void random_streams_round_trip(void **state)
{
    const uint32_t functions[] = {1, 2, 130, 5000};
    const uint32_t repetition[] = {0, 2, 20, 90};
    const uint64_t longest[] = {2, 14, 260, UINT64_C(1) << 36};
    for (uint64_t seed = 0; seed < 64; seed++) {
        round_trip(*state, &(stream_shape){.seed = seed + 1,
                                           .events = 500 + seed * 90,
                                           .open_depth = (uint32_t)(seed * 13 % 50),
                                           .functions = functions[seed % 4],
                                           .repetition = repetition[seed / 4 % 4],
                                           .step = seed % 3 == 0 ? 1 : 26,
                                           .longest_gap = longest[seed / 16 % 4],
                                           .endings = seed,
                                           .gaps = seed % 7,
                                           .values = seed % 90,
                                           .tail_calls = seed % 5 * 20,
                                           .untimed = seed % 4 * 30});
    }
}

static void the_largest_block_round_trips(void **state)
{
    round_trip(*state, &(stream_shape){.seed = 5,
                                       .events = SJ_BLOCK_MAX_EVENTS,
                                       .open_depth = SJ_BLOCK_MAX_INLINE_FRAMES,
                                       .functions = 300,
                                       .repetition = 5,
                                       .step = 26,
                                       .longest_gap = 1000,
                                       .endings = 60000,
                                       .gaps = SJ_BLOCK_MAX_GAPS});
}

static void more_functions_than_fit_in_16_bits_round_trip(void **state)
{
    round_trip(*state, &(stream_shape){.seed = 9,
                                       .events = SJ_BLOCK_MAX_EVENTS,
                                       .functions = 1000000,
                                       .repetition = 0,
                                       .step = 1,
                                       .longest_gap = 3});
}

/* 16-bit symbols distinguish at most 65,534 functions. */
static void the_symbols_widen_exactly_at_the_limit(void **state)
{
    for (uint32_t functions = 65534; functions <= 65535; functions++) {
        sj_event *events = calloc(functions, sizeof(*events));
        for (uint32_t i = 0; i < functions; i++) {
            events[i] = (sj_event){.ticks = i, .function = functions - i};
        }
        sj_block_input input = {
            .header = {.kind = SJ_BLOCK_CALLS, .event_count = functions, .clock_step = 1},
            .events = events};
        sj_block block;
        assert_int_equal(encode(*state, &input), SJ_OK);
        decode(*state, SJ_WANT_ALL, &block);
        assert_int_equal(block.symbols16 != NULL, functions == 65534);
        stream_check(&input, &block, SJ_WANT_ALL);
        free(events);
    }
}

static void function_ids_that_share_a_slot_round_trip(void **state)
{
    enum { COUNT = 2000 };
    sj_event events[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        events[i] = (sj_event){.ticks = i, .function = 1 + (i % 1000) * (1U << 19)};
    }
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = COUNT, .clock_step = 1},
        .events = events};
    sj_block block;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
}

static void a_step_that_does_not_divide_all_gaps_becomes_1(void **state)
{
    sj_event events[] = {{100, 1, 0}, {126, 2, 0}, {152, 0, 0}, {178, 0, 0}};
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = 4, .clock_step = 26}, .events = events};
    sj_block block;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    assert_int_equal(block.header.clock_step, 26);
    stream_check(&input, &block, SJ_WANT_ALL);
    events[3].ticks = 179;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    assert_int_equal(block.header.clock_step, 1);
    stream_check(&input, &block, SJ_WANT_ALL);
}

static void gaps_at_the_edges_of_32_and_64_bits_round_trip(void **state)
{
    const uint64_t longest[] = {UINT32_MAX - 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(0x1a) << 40,
                                UINT64_MAX - 200};
    const uint32_t steps[] = {1, 2, 3, 26, UINT32_MAX};
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 5; k++) {
            const uint64_t gap = longest[i] / steps[k] * steps[k];
            const sj_event events[] = {{7, 1, 0}, {7 + gap, 0, 0}, {7 + gap, 2, 0}};
            const sj_block_input input = {
                .header = {.kind = SJ_BLOCK_CALLS, .event_count = 3, .clock_step = steps[k]},
                .events = events};
            sj_block block;
            assert_int_equal(encode(*state, &input), SJ_OK);
            decode(*state, SJ_WANT_ALL, &block);
            assert_int_equal(block.header.clock_step, steps[k]);
            stream_check(&input, &block, SJ_WANT_ALL);
        }
    }
}

/* Long gaps are so rare that one byte for each gap is the smallest packing. Every pattern of long
 * gaps among eight gaps occurs. */
static void long_gaps_anywhere_among_eight_round_trip(void **state)
{
    enum { EVERY = 32, COUNT = 256 * EVERY + 5 };
    const uint32_t steps[] = {1, 26, UINT32_MAX};
    static sj_event events[COUNT];
    for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
        uint64_t ticks = 9;
        for (uint32_t i = 0; i < COUNT; i++) {
            const bool is_long = i % EVERY < 8 && (i / EVERY >> i % EVERY & 1) != 0;
            const uint64_t gap = is_long ? 255 + i % 3 * (uint64_t)1000000 : 20 + i % 235;
            ticks += i > 0 ? gap * steps[k] : 0;
            events[i] = (sj_event){.ticks = ticks, .function = 1 + i % 5};
        }
        const sj_block_input input = {
            .header = {.kind = SJ_BLOCK_CALLS, .event_count = COUNT, .clock_step = steps[k]},
            .events = events};
        sj_block block;
        assert_int_equal(encode(*state, &input), SJ_OK);
        decode(*state, SJ_WANT_ALL, &block);
        assert_int_equal(block.header.clock_step, steps[k]);
        stream_check(&input, &block, SJ_WANT_ALL);
    }
}

/* A stream that is encoded after other streams gives the same bytes: no state leaks from block to
 * block. */
static void a_reused_codec_gives_the_same_bytes_as_a_new_one(void **state)
{
    const stream_shape shape = {.seed = 4,
                                .events = 3000,
                                .functions = 40,
                                .repetition = 20,
                                .step = 26,
                                .longest_gap = 300};
    sj_block_input input;
    stream_make(&shape, &input);
    assert_int_equal(encode(*state, &input), SJ_OK);
    codec_pair *codec = *state;
    const size_t size = codec->size;
    uint8_t *first = malloc(size);
    memcpy(first, codec->bytes, size);
    for (uint64_t seed = 10; seed < 20; seed++) {
        round_trip(codec, &(stream_shape){.seed = seed,
                                          .events = 4000,
                                          .functions = 60,
                                          .repetition = 10,
                                          .step = 1,
                                          .longest_gap = 300});
    }
    assert_int_equal(encode(codec, &input), SJ_OK);
    assert_int_equal(codec->size, size);
    assert_memory_equal(codec->bytes, first, size);
    free(first);
    stream_free(&input);
}

/* Tables are emptied by raising an epoch. So many blocks make its 32 bits wrap around. */
static void tables_survive_the_wrap_of_their_epoch(void **state)
{
    const stream_shape shape = {
        .seed = 6, .events = 60, .functions = 4, .repetition = 40, .step = 26, .longest_gap = 2};
    codec_pair *codec = *state;
    sj_block_input input;
    sj_block block;
    uint8_t first[4096];
    size_t first_size = 0;
    stream_make(&shape, &input);
    for (unsigned i = 0; i < 17000; i++) {
        size_t size = 0;
        uint8_t bytes[4096];
        assert_int_equal(sj_block_encode(codec->encoder, &input, bytes, sizeof(bytes), &size),
                         SJ_OK);
        if (i == 0) {
            memcpy(first, bytes, size);
            first_size = size;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        assert_int_equal(
            sj_block_decode(codec->decoder, (sj_slice){bytes, size}, SJ_WANT_ALL, &block), SJ_OK);
    }
    stream_check(&input, &block, SJ_WANT_ALL);
    stream_free(&input);
}

static size_t size_of_recursion(codec_pair *codec, uint32_t depth)
{
    sj_stack_frame *frames = calloc(depth, sizeof(*frames));
    for (uint32_t i = 0; i < depth; i++) {
        frames[i] = (sj_stack_frame){.call_index = i,
                                     .start_ticks = 1000 + 260 * (uint64_t)i,
                                     .stack = UINT64_C(0x7ffd00000000) - 48 * (uint64_t)i,
                                     .function = 12};
    }
    const sj_event events[] = {{10000000, 12, 0}, {10000026, 0, 0}};
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = 2, .open_depth = depth, .clock_step = 26},
        .frames = frames,
        .events = events};
    sj_block block;
    assert_int_equal(encode(codec, &input), SJ_OK);
    decode(codec, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
    free(frames);
    return codec->size;
}

static void a_deep_regular_recursion_takes_few_bytes(void **state)
{
    assert_true(size_of_recursion(*state, 4000) <= size_of_recursion(*state, 4) + 16);
}

static void a_stack_block_round_trips(void **state)
{
    const stream_shape shape = {.seed = 8,
                                .open_depth = SJ_BLOCK_MAX_STACK_FRAMES,
                                .functions = 90,
                                .repetition = 20,
                                .step = 26};
    sj_block_input input;
    sj_block block;
    stream_make(&shape, &input);
    input.header.kind = SJ_BLOCK_DEEP_FRAMES;
    input.header.stack_reference = 4;
    input.header.stack_frames = 100;
    input.header.gap_depth = 6;
    input.header.waited_depth = 7;
    input.header.uncertain_depth = 8;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
    assert_int_equal(block.header.kind, SJ_BLOCK_DEEP_FRAMES);
    assert_int_equal(block.header.stack_reference, 4);
    assert_int_equal(block.header.gap_depth, 6);
    assert_int_equal(block.header.waited_depth, 7);
    assert_int_equal(block.header.uncertain_depth, 8);
    stream_free(&input);
}

static void an_empty_block_keeps_its_times_and_losses(void **state)
{
    const sj_gap gap = {
        .reason = SJ_GAP_RING_FULL, .calls = 5, .events = 9, .start_ticks = 10, .end_ticks = 90};
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .first_ticks = 100, .last_ticks = 100, .clock_step = 26},
        .gaps = &gap,
        .gap_count = 1};
    sj_block block;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
    assert_int_equal(block.header.first_ticks, 100);
    assert_int_equal(block.header.lost_calls, 5);
    assert_int_equal(block.header.lost_events, 9);
}

static void refuse(codec_pair *codec, const sj_block_input *input)
{
    assert_int_equal(encode(codec, input), SJ_EINVAL);
}

static void events_that_are_not_balanced_or_go_back_in_time_are_refused(void **state)
{
    sj_event events[] = {{100, 1, 0}, {126, 0, 0}, {152, 2, 0}};
    sj_block_input input = {.header = {.kind = SJ_BLOCK_CALLS, .event_count = 3, .clock_step = 26},
                            .events = events};
    assert_int_equal(encode(*state, &input), SJ_OK);
    events[2].function = SJ_EVENT_LEAVE;
    refuse(*state, &input);
    events[2].function = 2;
    events[0].function = SJ_EVENT_LEAVE; /* comes before its ENTER */
    events[1].function = 1;
    refuse(*state, &input);
    events[0].function = 1;
    events[1].function = SJ_EVENT_LEAVE;
    events[1].ticks = 99;
    refuse(*state, &input);
    events[1].ticks = 126;
    input.header.clock_step = 0;
    refuse(*state, &input);
}

static void tail_calls_that_match_no_exit_are_refused(void **state)
{
    sj_event events[] = {{100, 1, 0}, {126, 2, 1}, {152, 0, 0}, {152, 3, 2}};
    sj_stack_frame frame = {.start_ticks = 50, .jumped_ticks = 60, .function = 9};
    sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = 4, .open_depth = 1, .clock_step = 1},
        .events = events,
        .frames = &frame};
    assert_int_equal(encode(*state, &input), SJ_OK);
    events[3].tail_call = 3; /* only one LEAVE precedes it */
    refuse(*state, &input);
    events[3].tail_call = 2;
    events[2].tail_call = 1;
    refuse(*state, &input);
    events[2].tail_call = 0;
    frame.jumped_ticks = 49;
    refuse(*state, &input);
}

static void counts_over_the_limits_are_refused(void **state)
{
    const sj_event events[] = {{100, 1, 0}};
    const sj_block_input good = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = 1, .clock_step = 26}, .events = events};
    sj_block_input input = good;
    uint8_t bytes[512];
    size_t size;
    input.header.event_count = SJ_BLOCK_MAX_EVENTS + 1;
    assert_int_equal(sj_block_encode(((codec_pair *)*state)->encoder, &input, bytes, 512, &size),
                     SJ_EINVAL);
    input = good;
    input.header.open_depth = SJ_BLOCK_MAX_INLINE_FRAMES + 1;
    refuse(*state, &input);
    input = good;
    input.header.stack_frames = 1; /* no call is open */
    assert_int_equal(sj_block_encode(((codec_pair *)*state)->encoder, &input, bytes, 512, &size),
                     SJ_EINVAL);
    input = good;
    input.header.kind = 9;
    refuse(*state, &input);
    input = good;
    input.gap_count = SJ_BLOCK_MAX_GAPS + 1;
    refuse(*state, &input);
    assert_int_equal(sj_block_encode(((codec_pair *)*state)->encoder, &good, bytes, 130, &size),
                     SJ_EINVAL);
}

static void endings_without_a_leave_or_out_of_order_are_refused(void **state)
{
    const sj_event events[] = {{100, 1, 0}, {126, 2, 0}, {152, 0, 0}, {152, 0, 0}};
    sj_block_ending endings[] = {{2, SJ_ENDING_UNWOUND}, {3, SJ_ENDING_TRUNCATED}};
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = 4, .clock_step = 26},
        .events = events,
        .endings = endings,
        .ending_count = 2};
    assert_int_equal(encode(*state, &input), SJ_OK);
    endings[0].event = 1;
    refuse(*state, &input);
    endings[0].event = 3;
    refuse(*state, &input);
    endings[0] = (sj_block_ending){2, SJ_ENDING_RETURNED};
    refuse(*state, &input);
    endings[0].ending = 4;
    refuse(*state, &input);
    endings[0] = (sj_block_ending){2, SJ_ENDING_UNWOUND};
    endings[1].event = 4;
    refuse(*state, &input);
}

static void gaps_that_contradict_themselves_are_refused(void **state)
{
    sj_gap gaps[] = {{0, 1, 2, 3, 10, 20}, {0, 2, 3, 4, 20, 20}};
    const sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS, .clock_step = 1}, .gaps = gaps, .gap_count = 2};
    const sj_gap good = gaps[1];
    assert_int_equal(encode(*state, &input), SJ_OK);
    gaps[1].before_event = 1;
    refuse(*state, &input);
    gaps[1] = good;
    gaps[1].reason = 0;
    refuse(*state, &input);
    gaps[1] = good;
    gaps[1].end_ticks = 19;
    refuse(*state, &input);
    gaps[1] = good;
    gaps[1].calls = UINT64_MAX; /* the sum exceeds 64 bits */
    refuse(*state, &input);
}

/* Encodes calls without values, then with one value each. Returns the additional bytes for each
 * value. */
static double bytes_per_value(codec_pair *codec, sj_block_value (*make)(size_t number))
{
    enum { VALUES = 8000 };
    const stream_shape shape = {.seed = 9,
                                .events = 4 * VALUES,
                                .functions = 20,
                                .repetition = 30,
                                .step = 26,
                                .longest_gap = 300};
    sj_block_input input;
    sj_block_value *values = calloc(VALUES, sizeof(*values));
    sj_block block;
    stream_make(&shape, &input);
    assert_int_equal(encode(codec, &input), SJ_OK);
    const size_t without = codec->size;
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = make(i);
        values[i].call_index = input.header.first_call + i;
    }
    const sj_block_value *none = input.values;
    input.values = values;
    input.value_count = VALUES;
    assert_int_equal(encode(codec, &input), SJ_OK);
    decode(codec, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
    const double bytes = (double)(codec->size - without) / VALUES;
    input.values = none;
    free(values);
    stream_free(&input);
    return bytes;
}

/* Returns 16 pseudorandom bits for `number`. */
static uint64_t mixed(uint64_t number)
{
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb) >> 48;
}

static sj_block_value make_integer(size_t number)
{
    return (sj_block_value){.descriptor = sj_value_descriptor(1, SJ_VALUE_INT),
                            .bits = mixed(number)};
}

static sj_block_value make_pointer(size_t number)
{
    return (sj_block_value){.descriptor = sj_value_descriptor(1, SJ_VALUE_POINTER),
                            .bits = UINT64_C(0x7f1234500000) + mixed(number) * 16};
}

static sj_block_value make_text(size_t number)
{
    static const char text[] = "/usr/share/some/folder/with/a/file.txt";
    return (sj_block_value){.descriptor = sj_value_descriptor(2, SJ_VALUE_STRING),
                            .text = text,
                            .text_bytes = (uint16_t)(sizeof(text) - 1 - mixed(number) % 20)};
}

static void values_take_few_bytes(void **state)
{
    const double integer = bytes_per_value(*state, make_integer);
    const double pointer = bytes_per_value(*state, make_pointer);
    const double text = bytes_per_value(*state, make_text);
    print_message("bytes a value: integer %.2f, pointer %.2f, repeated text %.2f\n", integer,
                  pointer, text);
    assert_true(integer <= 4 && pointer <= 4 && text <= 2);
}

/* Tests texts of the greatest length, as many as fit into a block, and one byte more. */
static void long_texts_round_trip_within_their_limit(void **state)
{
    enum { TEXTS = SJ_BLOCK_MAX_TEXT_BYTES / SJ_VALUE_TEXT_MOST };
    const stream_shape shape = {
        .seed = 9, .events = 100, .functions = 4, .repetition = 30, .step = 26, .longest_gap = 3};
    char *texts = malloc(SJ_BLOCK_MAX_TEXT_BYTES + 1);
    sj_block_value *values = calloc(TEXTS + 1, sizeof(*values));
    sj_block_input input;
    sj_block block;
    for (size_t i = 0; i <= SJ_BLOCK_MAX_TEXT_BYTES; i++) {
        texts[i] = (char)(i * 2654435761U >> 13);
    }
    stream_make(&shape, &input);
    const sj_block_value *none = input.values;
    for (size_t i = 0; i <= TEXTS; i++) {
        values[i] = (sj_block_value){.call_index = input.header.first_call,
                                     .descriptor = sj_value_descriptor(1, SJ_VALUE_STRING),
                                     .text = texts + i % TEXTS * SJ_VALUE_TEXT_MOST,
                                     .text_bytes = SJ_VALUE_TEXT_MOST};
    }
    input.values = values;
    input.value_count = TEXTS;
    assert_int_equal(encode(*state, &input), SJ_OK);
    decode(*state, SJ_WANT_ALL, &block);
    stream_check(&input, &block, SJ_WANT_ALL);
    values[TEXTS].text_bytes = 1;
    input.value_count = TEXTS + 1;
    assert_int_equal(encode(*state, &input), SJ_EINVAL);
    values[0].text_bytes = SJ_VALUE_TEXT_MOST + 1;
    input.value_count = 1;
    assert_int_equal(encode(*state, &input), SJ_EINVAL);
    input.values = none;
    input.value_count = 0;
    stream_free(&input);
    free(values);
    free(texts);
}

int main(void)
{
#define BLOCK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        BLOCK_TEST(values_take_few_bytes),
        BLOCK_TEST(long_texts_round_trip_within_their_limit),
        BLOCK_TEST(streams_of_every_small_size_round_trip),
        BLOCK_TEST(random_streams_round_trip),
        BLOCK_TEST(the_largest_block_round_trips),
        BLOCK_TEST(more_functions_than_fit_in_16_bits_round_trip),
        BLOCK_TEST(the_symbols_widen_exactly_at_the_limit),
        BLOCK_TEST(function_ids_that_share_a_slot_round_trip),
        BLOCK_TEST(a_step_that_does_not_divide_all_gaps_becomes_1),
        BLOCK_TEST(gaps_at_the_edges_of_32_and_64_bits_round_trip),
        BLOCK_TEST(long_gaps_anywhere_among_eight_round_trip),
        BLOCK_TEST(a_reused_codec_gives_the_same_bytes_as_a_new_one),
        BLOCK_TEST(tables_survive_the_wrap_of_their_epoch),
        BLOCK_TEST(a_deep_regular_recursion_takes_few_bytes),
        BLOCK_TEST(a_stack_block_round_trips),
        BLOCK_TEST(an_empty_block_keeps_its_times_and_losses),
        BLOCK_TEST(events_that_are_not_balanced_or_go_back_in_time_are_refused),
        BLOCK_TEST(tail_calls_that_match_no_exit_are_refused),
        BLOCK_TEST(counts_over_the_limits_are_refused),
        BLOCK_TEST(endings_without_a_leave_or_out_of_order_are_refused),
        BLOCK_TEST(gaps_that_contradict_themselves_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
