/* A profile adds a block completely or not at all, whichever allocation fails. */
#include "agent/modes/profile.h"

#include "proto/callgraph/profile.h"
#include "tests/support/check.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test_session.h"

#include <stdlib.h>
#include <zstd.h>

enum { DEPTH = 20, LOST = 3, STREAM = 1, OTHER = 2, FIRST_OPEN = DEPTH + 2 + LOST, MOST = 1000 };

typedef struct made_block {
    uint8_t *bytes;
    size_t size;
} made_block;

/* `returned` holds one call and DEPTH nested calls. `entered` holds them again, but the nested
 * calls end in `ended`, the last block. `other_ended` is such a block of another thread. */
static made_block returned, entered, ended, other_ended;

static made_block encode(const sj_block_input *input)
{
    sj_block_encoder *encoder;
    made_block made = {.size = sj_block_bound(input)};
    made.bytes = malloc(made.size);
    assert_non_null(made.bytes);
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    assert_int_equal(sj_block_encode(encoder, input, made.bytes, made.size, &made.size), SJ_OK);
    sj_block_encoder_free(encoder);
    return made;
}

static sj_block_header header_of(uint32_t stream, uint64_t first_event, uint64_t first_call)
{
    return (sj_block_header){.version = SJ_BLOCK_VERSION,
                             .kind = SJ_BLOCK_CALLS,
                             .session = {.bytes = {1, 2, 3}},
                             .stream = stream,
                             .first_event = first_event,
                             .first_call = first_call,
                             .clock_step = 1};
}

static made_block encode_ended(uint32_t stream)
{
    sj_event leaves[DEPTH];
    sj_stack_frame frames[DEPTH];
    sj_block_ending endings[DEPTH];
    for (uint32_t i = 0; i < DEPTH; i++) {
        leaves[i] = (sj_event){.ticks = 1000 + i, .function = SJ_EVENT_LEAVE};
        frames[i] =
            (sj_stack_frame){.call_index = FIRST_OPEN + i, .start_ticks = 602 + i, .function = 1};
        endings[i] = (sj_block_ending){.event = i, .ending = SJ_ENDING_OPEN};
    }
    sj_block_input input = {.header =
                                header_of(stream, 3 * DEPTH + 4 + 2 * LOST, FIRST_OPEN + DEPTH),
                            .frames = frames,
                            .events = leaves,
                            .endings = endings,
                            .ending_count = DEPTH};
    input.header.open_depth = DEPTH;
    input.header.event_count = DEPTH;
    input.header.first_ticks = 1000;
    input.header.last_ticks = 1000 + DEPTH - 1;
    input.header.flags = SJ_BLOCK_LAST;
    return encode(&input);
}

static int make_blocks(void **state)
{
    sj_event events[2 * DEPTH + 2];
    const sj_gap gap = {.reason = SJ_GAP_RING_FULL,
                        .calls = LOST,
                        .events = 2 * LOST,
                        .start_ticks = 590,
                        .end_ticks = 595};
    (void)state;
    for (uint32_t i = 0; i < 2 * DEPTH + 2; i++) {
        const bool is_entry = i != 1 && i < DEPTH + 2;
        events[i] =
            (sj_event){.ticks = 100 + i, .function = is_entry ? 1 : (uint32_t)SJ_EVENT_LEAVE};
    }
    sj_block_input input = {.header = header_of(STREAM, 0, 0), .events = events};
    input.header.event_count = 2 * DEPTH + 2;
    input.header.call_count = DEPTH + 1;
    input.header.first_ticks = 100;
    input.header.last_ticks = 100 + 2 * DEPTH + 1;
    returned = encode(&input);
    for (uint32_t i = 0; i < DEPTH + 2; i++) {
        events[i].ticks = 600 + i;
    }
    input = (sj_block_input){.header = header_of(STREAM, 2 * DEPTH + 2, DEPTH + 1),
                             .events = events,
                             .gaps = &gap,
                             .gap_count = 1};
    input.header.event_count = DEPTH + 2;
    input.header.call_count = DEPTH + 1;
    input.header.end_depth = DEPTH;
    input.header.first_ticks = 600;
    input.header.last_ticks = 600 + DEPTH + 1;
    entered = encode(&input);
    ended = encode_ended(STREAM);
    other_ended = encode_ended(OTHER);
    return 0;
}

static int free_blocks(void **state)
{
    (void)state;
    free(returned.bytes);
    free(entered.bytes);
    free(ended.bytes);
    free(other_ended.bytes);
    return 0;
}

static sj_status add_block(sj_profiler *profiler, const made_block *made)
{
    return sj_profiler_block(profiler, (sj_slice){.data = made->bytes, .size = made->size});
}

/* One allocation may fail. A block that was refused is accepted the second time. */
static void add_block_at_last(sj_profiler *profiler, const made_block *made)
{
    if (add_block(profiler, made) != SJ_OK) {
        assert_int_equal(add_block(profiler, made), SJ_OK);
    }
}

static void read_profile(test_session *session, sj_profile *profile)
{
    static uint8_t raw[1 << 16];
    size_t size = 0;
    assert_int_equal(test_session_read(session, SJ_FRAME_PROFILE), 1);
    for (size_t i = 0; i < session->count; i++) {
        const sj_slice payload = session->frames[i].payload;
        if (session->frames[i].type == SJ_FRAME_PROFILE) {
            size = ZSTD_decompress(raw, sizeof(raw), payload.data, payload.size);
        }
    }
    assert_int_equal(sj_profile_decode((sj_slice){.data = raw, .size = size}, profile), SJ_OK);
}

/* The contents of each block, in the order in which the blocks are added. */
static const struct {
    const made_block *block;
    uint64_t events;
    uint64_t ended; /* calls that end in the block */
    uint64_t open;  /* calls that end as open */
} added[] = {{&returned, 2 * DEPTH + 2, DEPTH + 1, 0},
             {&other_ended, DEPTH, DEPTH, DEPTH},
             {&entered, DEPTH + 2, 1, 0},
             {&ended, DEPTH, DEPTH, DEPTH}};

enum { BLOCKS = sizeof(added) / sizeof(*added) };

/* Returns the number of events of the blocks from `first` on. */
static uint64_t events_from(size_t first)
{
    uint64_t events = 0;
    for (size_t i = first; i < BLOCKS; i++) {
        events += added[i].events;
    }
    return events;
}

/* Returns the events of the gap that reports the lost sums of an unusable graph, or 0. */
static uint64_t read_gap(test_session *session)
{
    const size_t count = test_session_read(session, SJ_FRAME_GAP);
    assert_in_range(count, 0, 1);
    if (count == 0) {
        return 0;
    }
    Sojourn__Gap *gap = test_session_message(session, SJ_FRAME_GAP, 0, &sojourn__gap__descriptor);
    const uint64_t events = gap->events;
    protobuf_c_message_free_unpacked(&gap->base, NULL);
    return events;
}

/* Each call that ended is in the sums once, and each open call is in the list once. If the graph
 * ran out of memory, the sums of all earlier blocks are lost, and a gap reports them. */
static void check_sent(test_session *session)
{
    sj_profile profile;
    uint64_t calls = 0;
    uint64_t ended_calls = 0;
    uint64_t open = 0;
    size_t first = 0;
    const uint64_t lost = read_gap(session);
    while (first < BLOCKS && events_from(first) + lost != events_from(0)) {
        first++;
    }
    assert_true(first < BLOCKS);
    for (size_t i = first; i < BLOCKS; i++) {
        ended_calls += added[i].ended;
        open += added[i].open;
    }
    read_profile(session, &profile);
    for (uint32_t i = 0; i < profile.count; i++) {
        calls += profile.nodes[i].calls;
    }
    assert_int_equal(calls, ended_calls);
    assert_int_equal(profile.open_count, open);
    sj_profile_deinit(&profile);
}

/* The caller of the profiler reports the gaps of the last block. */
static void check_gaps(const sj_profiler *profiler, size_t wanted)
{
    size_t count;
    const sj_gap *gaps = sj_profiler_gaps(profiler, &count);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gaps[i].calls, LOST);
        assert_int_equal(gaps[i].events, 2 * LOST);
        assert_int_equal(gaps[i].reason, SJ_GAP_RING_FULL);
    }
}

static bool profile_fails_at(uint64_t allocation)
{
    test_session *session = test_session_open(0);
    const sj_profiler_options options = {.writer = session->writer,
                                         .runtime_directory = session->directory};
    sj_profiler *profiler;
    assert_int_equal(sj_profiler_new(&options, &profiler), SJ_OK);
    fail_alloc_at(allocation);
    for (size_t i = 0; i < BLOCKS; i++) {
        add_block_at_last(profiler, added[i].block);
        check_gaps(profiler, added[i].block == &entered);
    }
    if (sj_profiler_send(profiler) != SJ_OK) {
        assert_int_equal(sj_profiler_send(profiler), SJ_OK);
    }
    const bool has_failed = fail_alloc_stop();
    check_sent(session);
    sj_profiler_free(profiler);
    test_session_close(session);
    return has_failed;
}

static void a_block_counts_once_whichever_allocation_fails(void **state)
{
    uint64_t allocation = 0;
    (void)state;
    while (allocation < MOST && profile_fails_at(allocation)) {
        allocation++;
    }
    assert_true(allocation > 0 && allocation < MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_counts_once_whichever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, make_blocks, free_blocks);
}
