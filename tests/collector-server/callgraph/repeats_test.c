/* A block that repeats itself is replayed by copying which calls end (replay_repeats.c). Each test
 * applies the same blocks twice, once as if they were not known to repeat anything, and compares
 * everything. */
#include "collector-server/callgraph/callgraph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 40000, FRAMES = 40, FUNCTIONS = 30, BLOCKS = 3 };

/* How a stream of events is made. */
typedef struct shape {
    uint32_t seed;
    uint32_t longest_repeat;
    uint32_t nearest; /* repeats begin at most so many events back; 0: anywhere */
    uint32_t open_depth;
    uint32_t unwound; /* of 1,000 LEAVEs */
    uint32_t truncated;
    uint32_t gap_count;
    bool coarse;         /* times often stand still */
    uint32_t most_depth; /* 0: 900 */
    uint32_t loop;       /* passes of a loop that is called again and again; 0: nothing of it */
} shape;

typedef struct maker {
    shape how;
    uint64_t random;
    uint32_t depth;
    uint64_t ticks;
    size_t count;
    sj_event events[EVENTS];
    sj_frame frames[FRAMES];
    sj_block_ending endings[EVENTS];
    size_t ending_count;
    sj_gap gaps[64];
    uint8_t *bytes;
    size_t capacity;
    size_t size;
} maker;

static uint32_t draw(maker *made, uint32_t below)
{
    made->random = made->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(made->random >> 33) % below;
}

/* Adds an event if there may be one like it. */
static bool add_event(maker *made, uint32_t function)
{
    const bool leaves = function == SJ_EVENT_LEAVE;
    const uint32_t most = made->how.most_depth != 0 ? made->how.most_depth : 900;
    if (made->count == EVENTS || (leaves && made->depth == 0) || (!leaves && made->depth == most)) {
        return false;
    }
    made->depth = leaves ? made->depth - 1 : made->depth + 1;
    made->ticks += made->how.coarse ? draw(made, 2) : draw(made, 7) * draw(made, 90);
    made->events[made->count++] = (sj_event){.ticks = made->ticks, .function = function};
    if (leaves && draw(made, 1000) < made->how.unwound) {
        const bool truncated = draw(made, 1000) < made->how.truncated;
        made->endings[made->ending_count++] = (sj_block_ending){
            .event = (uint32_t)made->count - 1,
            .ending = (uint32_t)(truncated ? SJ_ENDING_TRUNCATED : SJ_ENDING_UNWOUND)};
    }
    return true;
}

static void repeat_some(maker *made)
{
    const uint32_t count = (uint32_t)made->count;
    const uint32_t back =
        made->how.nearest != 0 && made->how.nearest < count ? made->how.nearest : count;
    size_t from = count - 1 - draw(made, back);
    for (uint32_t left = draw(made, made->how.longest_repeat);
         left > 0 && add_event(made, made->events[from].function); left--) {
        from++;
    }
}

static void make_loops(maker *made)
{
    while (made->count < EVENTS) {
        add_event(made, 3);
        for (uint32_t i = 0; i < made->how.loop; i++) {
            add_event(made, 2);
            add_event(made, 4);
            add_event(made, SJ_EVENT_LEAVE);
            add_event(made, SJ_EVENT_LEAVE);
        }
        add_event(made, SJ_EVENT_LEAVE);
    }
}

static void make_events(maker *made)
{
    while (made->count < EVENTS) {
        for (uint32_t left = draw(made, 40); left > 0; left--) {
            const bool leaves = draw(made, 2) == 0 && made->depth > 0;
            add_event(made, leaves ? (uint32_t)SJ_EVENT_LEAVE : 1 + draw(made, FUNCTIONS));
        }
        if (made->count > 100) {
            repeat_some(made);
        }
    }
}

/* Encodes a block whose first event is none of the first of a step. */
static void make_block(maker *made, const shape *how)
{
    memset(made, 0, offsetof(maker, bytes));
    made->how = *how;
    made->random = how->seed;
    made->depth = how->open_depth;
    made->ticks = 1000000;
    for (uint32_t i = 0; i < how->open_depth; i++) {
        made->frames[i] = (sj_frame){.call_index = 10 + i * 3,
                                     .start_ticks = 1000 + i * 90,
                                     .child_ticks = i % 3 * 20,
                                     .function = 1 + i % FUNCTIONS};
    }
    if (how->loop != 0) {
        make_loops(made);
    } else {
        make_events(made);
    }
    for (uint32_t i = 0; i < how->gap_count; i++) {
        const uint32_t reasons[] = {SJ_GAP_WAITED, SJ_GAP_RING_FULL, SJ_GAP_ORPHAN};
        made->gaps[i] = (sj_gap){.before_event = (i + 1) * (EVENTS / 70),
                                 .reason = reasons[i % 3],
                                 .calls = i,
                                 .events = 2 * i,
                                 .start_ticks = 1000000 + i,
                                 .end_ticks = 1000000 + i};
    }
    const sj_block_input input = {.header = {.kind = SJ_BLOCK_CALLS,
                                             .stream = 1,
                                             .first_event = 5000,
                                             .first_call = 2500,
                                             .event_count = EVENTS,
                                             .clock_step = 1,
                                             .open_depth = how->open_depth},
                                  .frames = made->frames,
                                  .events = made->events,
                                  .endings = made->endings,
                                  .ending_count = made->ending_count,
                                  .gaps = made->gaps,
                                  .gap_count = how->gap_count};
    sj_block_encoder *encoder;
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    made->capacity = sj_block_bound(&input);
    made->bytes = malloc(made->capacity);
    assert_int_equal(sj_block_encode(encoder, &input, made->bytes, made->capacity, &made->size),
                     SJ_OK);
    sj_block_encoder_free(encoder);
}

static void check_histograms(const sj_histogram *one, const sj_histogram *other)
{
    static uint8_t bytes[2][65536];
    const size_t size = sj_histogram_encode(one, bytes[0], sizeof(bytes[0]));
    assert_int_equal(sj_histogram_encode(other, bytes[1], sizeof(bytes[1])), size);
    assert_memory_equal(bytes[0], bytes[1], size);
}

static void check_graphs(const sj_callgraph *one, const sj_callgraph *other)
{
    assert_int_equal(sj_callgraph_node_count(one), sj_callgraph_node_count(other));
    for (uint32_t i = 0; i < sj_callgraph_node_count(one); i++) {
        const sj_path_node *node = sj_callgraph_node(one, i);
        const sj_path_node *like = sj_callgraph_node(other, i);
        assert_int_equal(node->parent, like->parent);
        assert_int_equal(node->function, like->function);
        assert_true(node->calls == like->calls && node->total_ticks == like->total_ticks);
        assert_true(node->self_ticks == like->self_ticks);
        assert_true(node->min_ticks == like->min_ticks && node->max_ticks == like->max_ticks);
        assert_true(node->unwound == like->unwound && node->untrusted == like->untrusted);
        check_histograms(&node->histogram, &like->histogram);
    }
}

static void check_slow_calls(sj_callgraph *one, sj_callgraph *other)
{
    const sj_slow_calls *slow = sj_callgraph_slow_calls(one);
    const sj_slow_calls *like = sj_callgraph_slow_calls(other);
    assert_int_equal(slow->list_count, like->list_count);
    for (uint32_t i = 0; i < slow->list_count; i++) {
        assert_int_equal(slow->lists[i].count, like->lists[i].count);
        assert_memory_equal(slow->lists[i].calls, like->lists[i].calls,
                            slow->lists[i].count * sizeof(slow->lists[i].calls[0]));
    }
}

static void check_summaries(const sj_block_summary *one, const sj_block_summary *other)
{
    assert_true(one->ended_calls == other->ended_calls);
    assert_true(one->max_duration_ticks == other->max_duration_ticks);
    assert_int_equal(one->late_count, other->late_count);
    for (size_t i = 0; i < one->late_count; i++) {
        assert_memory_equal(&one->late[i], &other->late[i], sizeof(one->late[i]));
    }
    assert_int_equal(one->sample_count, other->sample_count);
    assert_memory_equal(one->samples, other->samples, one->sample_count * sizeof(uint32_t));
}

/* How much of the block the decoder says to repeat; what it says is true. */
static size_t check_repeats(const sj_block *block)
{
    size_t repeated = 0;
    size_t end = 0;
    for (size_t i = 0; i < block->repeat_count; i++) {
        const sj_block_repeat *repeat = &block->repeats[i];
        assert_true(repeat->first >= end && repeat->source < repeat->first);
        assert_true(repeat->count >= SJ_BLOCK_LEAST_REPEAT);
        for (size_t k = 0; k < repeat->count; k++) {
            assert_int_equal(block->symbols16[repeat->first + k],
                             block->symbols16[repeat->source + k]);
        }
        end = repeat->first + (size_t)repeat->count;
        repeated += repeat->count;
    }
    assert_true(end <= block->header.event_count);
    return repeated;
}

/* The second block is no repeat for either, and no loop: what it leaves behind must not matter to
 * the third. */
static void check_shape(const shape *how)
{
    sj_callgraph *graphs[2];
    sj_block_decoder *decoder;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_callgraph_new(&graphs[0]), SJ_OK);
    assert_int_equal(sj_callgraph_new(&graphs[1]), SJ_OK);
    maker *made = calloc(1, sizeof(*made));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        shape next = *how;
        next.seed += i;
        next.loop = i == 1 ? 0 : how->loop;
        make_block(made, &next);
        sj_block block;
        sj_block_summary summaries[2];
        const sj_slice bytes = {.data = made->bytes, .size = made->size};
        assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
        assert_true(check_repeats(&block) > EVENTS / 2);
        sj_block plain = block;
        plain.repeat_count = 0;
        const sj_block *known = i == 1 ? &plain : &block;
        assert_int_equal(sj_callgraph_apply(graphs[0], known, NULL, NULL, &summaries[0]), SJ_OK);
        assert_int_equal(sj_callgraph_apply(graphs[1], &plain, NULL, NULL, &summaries[1]), SJ_OK);
        check_summaries(&summaries[0], &summaries[1]);
        check_graphs(graphs[0], graphs[1]);
        check_slow_calls(graphs[0], graphs[1]);
        free(made->bytes);
    }
    free(made);
    sj_callgraph_free(graphs[0]);
    sj_callgraph_free(graphs[1]);
    sj_block_decoder_free(decoder);
}

static void test_long_repeats_from_anywhere(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 8; seed++) {
        check_shape(&(shape){.seed = seed * 100, .longest_repeat = 5000});
        check_shape(&(shape){
            .seed = seed * 100, .longest_repeat = 3000, .open_depth = FRAMES, .coarse = true});
    }
}

/* A loop, a recursion that goes down or comes back: what is repeated ends where the repeat begins.
 */
static void test_repeats_of_what_was_just_done(void **state)
{
    (void)state;
    for (uint32_t nearest = 1; nearest <= 25; nearest += 2) {
        check_shape(&(shape){.seed = nearest * 100,
                             .longest_repeat = 6000,
                             .nearest = nearest,
                             .open_depth = nearest});
    }
    check_shape(&(shape){.seed = 100, .longest_repeat = 6000, .loop = 500});
}

static void test_repeats_of_calls_that_did_not_return(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 6; seed++) {
        const shape how = {
            .seed = seed * 100, .longest_repeat = 5000, .open_depth = 9, .unwound = seed * 80};
        check_shape(&how);
        shape truncated = how;
        truncated.truncated = seed * 5;
        truncated.gap_count = 3;
        check_shape(&truncated);
        check_shape(&(shape){
            .seed = seed * 100, .longest_repeat = 5000, .unwound = 400, .loop = 800 * seed});
    }
}

/* Calls below some depth are counted at nodes above them. */
static void test_repeats_in_a_deep_recursion(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 4; seed++) {
        check_shape(
            &(shape){.seed = seed * 100, .longest_repeat = 9000, .nearest = 9, .most_depth = 3000});
    }
}

static void test_repeats_across_gaps(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 6; seed++) {
        check_shape(&(shape){.seed = seed * 100,
                             .longest_repeat = 5000,
                             .open_depth = 12,
                             .unwound = 300,
                             .gap_count = 5 * seed});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_repeats_from_anywhere),
        cmocka_unit_test(test_repeats_of_what_was_just_done),
        cmocka_unit_test(test_repeats_of_calls_that_did_not_return),
        cmocka_unit_test(test_repeats_in_a_deep_recursion),
        cmocka_unit_test(test_repeats_across_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
