/* The codec handles many gaps at a time. So each unusual gap is tested at each place. */
#include "proto/block/block_internal.h"
#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EVENTS = 70, PACKINGS = 3 };

typedef struct timed_block {
    sj_block_encoder *encoder;
    sj_block_decoder *decoder;
    uint8_t *bytes;
    size_t capacity;
    sj_event events[EVENTS];
} timed_block;

static int set_up(void **state)
{
    timed_block *made = calloc(1, sizeof(*made));
    *state = made;
    return made == NULL || sj_block_encoder_new(&made->encoder) != SJ_OK ||
           sj_block_decoder_new(&made->decoder) != SJ_OK;
}

static int tear_down(void **state)
{
    timed_block *made = *state;
    sj_block_encoder_free(made->encoder);
    sj_block_decoder_free(made->decoder);
    free(made->bytes);
    free(made);
    return 0;
}

/* Makes gaps of 0, 1, ... `most` steps in turn, and one gap of `odd` ticks before event `place`. */
static void fill_events(timed_block *made, uint32_t step, uint32_t most, size_t place, uint64_t odd)
{
    uint64_t ticks = 1000;
    for (size_t i = 0; i < EVENTS; i++) {
        ticks += i == place ? odd : i % (most + 1) * (uint64_t)step;
        made->events[i] = (sj_event){.ticks = ticks, .function = i < EVENTS / 2 ? 1 + i % 9 : 0};
    }
}

static sj_status encode(timed_block *made, uint32_t step, sj_block_input *input, size_t *size)
{
    *input = (sj_block_input){
        .header = {.kind = SJ_BLOCK_CALLS, .event_count = EVENTS, .clock_step = step},
        .events = made->events};
    made->capacity = sj_block_bound(input);
    free(made->bytes);
    made->bytes = malloc(made->capacity);
    assert_non_null(made->bytes);
    return sj_block_encode(made->encoder, input, made->bytes, made->capacity, size);
}

/* Returns the size of a packing as sj_times_measure computes it: `bits` bits for each gap, and one
 * more byte for each long gap. */
static size_t packed_bytes(const timed_block *made, uint32_t step, uint32_t bits)
{
    size_t bytes = EVENTS * bits / 8;
    for (size_t i = 1; i < EVENTS; i++) {
        const uint64_t gap = (made->events[i].ticks - made->events[i - 1].ticks) / step;
        bytes += gap >= (UINT64_C(1) << bits) - 1;
    }
    return bytes;
}

static void check_packing(const timed_block *made, uint32_t step)
{
    uint8_t gaps[EVENTS];
    sj_times_plan plan;
    assert_int_equal(sj_times_measure(made->events, EVENTS, step, gaps, &plan), SJ_OK);
    const size_t bytes = packed_bytes(made, plan.step, plan.packing);
    for (uint32_t bits = 2; bits <= 8; bits *= 2) {
        assert_true(bytes <= packed_bytes(made, plan.step, bits));
    }
}

static void round_trip(timed_block *made, uint32_t step, uint32_t expected_step)
{
    sj_block_input input;
    sj_block block;
    size_t size = 0;
    assert_int_equal(encode(made, step, &input, &size), SJ_OK);
    const sj_slice bytes = {.data = made->bytes, .size = size};
    assert_int_equal(sj_block_decode(made->decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(block.header.clock_step, expected_step);
    check_packing(made, step);
    stream_check(&input, &block, SJ_WANT_ALL);
}

/* Gaps up to these numbers of steps are packed into 2, 4 and 8 bits. */
static const uint32_t most_steps[PACKINGS] = {2, 14, 200};

static void a_long_gap_at_any_place_round_trips(void **state)
{
    const uint64_t gaps[] = {0, 3, 15, 254, 255, 256, 32767, 32768, 65535, 65536, UINT32_MAX};
    const uint32_t steps[] = {1, 2, 26, 32767, 32768, 65536};
    for (size_t place = 0; place < EVENTS * PACKINGS; place++) {
        const uint32_t most = most_steps[place / EVENTS];
        for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
            for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
                fill_events(*state, steps[k], most, place % EVENTS, gaps[i] * steps[k]);
                round_trip(*state, steps[k], steps[k]);
            }
        }
    }
}

static void a_gap_that_is_no_multiple_of_the_step_is_found_at_any_place(void **state)
{
    const uint64_t gaps[] = {1, 25, 51, 26 * 255 + 13, 32769, 26 * UINT64_C(100000000000) + 1};
    for (size_t place = 1; place < EVENTS; place++) {
        for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
            for (size_t packing = 0; packing < PACKINGS; packing++) {
                fill_events(*state, 26, most_steps[packing], place, gaps[i]);
                round_trip(*state, 26, 1);
            }
        }
    }
}

static void time_that_goes_back_is_refused_at_any_place(void **state)
{
    timed_block *made = *state;
    const uint32_t steps[] = {1, 26, 32768};
    sj_block_input input;
    size_t size;
    for (size_t place = 1; place < EVENTS; place++) {
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            fill_events(made, steps[k], 2, place, 0);
            made->events[place].ticks = made->events[place - 1].ticks - steps[k];
            assert_int_equal(encode(made, steps[k], &input, &size), SJ_EINVAL);
        }
    }
}

/* Time is nearly 2^64 at event 1 and overflows before event `place`, by a short gap. The last time
 * is later than the first one, but a decoder would refuse the block. */
static void time_that_overflows_is_refused_at_any_place(void **state)
{
    timed_block *made = *state;
    const uint32_t steps[] = {1, 26, 300};
    sj_block_input input;
    size_t size;
    for (size_t place = 2; place < EVENTS; place++) {
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            const uint64_t last = 10 + (UINT64_MAX - 10) / steps[k] * steps[k];
            fill_events(made, steps[k], 2, 1, 0);
            made->events[0].ticks = 10;
            for (size_t i = 1; i < EVENTS; i++) {
                made->events[i].ticks = last + (i < place ? 0 : UINT64_C(100) * steps[k]);
            }
            assert_int_equal(encode(made, steps[k], &input, &size), SJ_EINVAL);
        }
    }
}

int main(void)
{
#define TIMES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TIMES_TEST(a_long_gap_at_any_place_round_trips),
        TIMES_TEST(a_gap_that_is_no_multiple_of_the_step_is_found_at_any_place),
        TIMES_TEST(time_that_goes_back_is_refused_at_any_place),
        TIMES_TEST(time_that_overflows_is_refused_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
