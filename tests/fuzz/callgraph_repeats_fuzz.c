/* Events that repeat earlier ones, made of any bytes: a block of them must count the same whether
 * it is replayed as one that repeats itself or not. */
#include "collector-server/callgraph/callgraph.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS = 40000, MOST_DEPTH = 1100, FRAMES = 8, GAPS = 16, FUNCTIONS = 12 };

static sj_event events[EVENTS];
static sj_block_ending endings[EVENTS];
static sj_gap gaps[GAPS];
static sj_frame frames[FRAMES];

static void add_event(sj_block_input *input, uint32_t *depth, uint32_t function, uint32_t gap)
{
    const bool leaves = function == SJ_EVENT_LEAVE;
    const uint32_t count = input->header.event_count;
    if (count == EVENTS || (leaves ? *depth == 0 : *depth == MOST_DEPTH)) {
        return;
    }
    *depth += leaves ? UINT32_MAX : 1;
    events[count].function = function;
    events[count].ticks = count > 0 ? events[count - 1].ticks + gap : 1000;
    input->header.event_count++;
}

static void repeat(sj_block_input *input, uint32_t *depth, uint32_t back, uint32_t count)
{
    for (uint32_t i = 0; i < count && back < input->header.event_count; i++) {
        add_event(input, depth, events[input->header.event_count - 1 - back].function,
                  i % 5 * back);
    }
}

static void end_last(sj_block_input *input, uint32_t ending)
{
    const uint32_t last = input->header.event_count - 1;
    const bool has_one = input->ending_count > 0 && endings[input->ending_count - 1].event == last;
    if (input->header.event_count > 0 && events[last].function == SJ_EVENT_LEAVE && !has_one) {
        endings[input->ending_count++] = (sj_block_ending){.event = last, .ending = ending};
    }
}

static void add_gap(sj_block_input *input, uint32_t reason)
{
    if (input->gap_count < GAPS) {
        gaps[input->gap_count++] =
            (sj_gap){.before_event = input->header.event_count, .reason = reason};
    }
}

/* A byte is an event, how the last one ended, a gap, or with two more what to repeat. */
static void make_input(sj_reader *reader, sj_block_input *input)
{
    uint32_t depth = input->header.open_depth;
    while (sj_reader_left(reader) > 0) {
        const uint8_t byte = sj_read_u8(reader);
        if (byte < 64) {
            add_event(input, &depth, 1 + byte % FUNCTIONS, byte);
        } else if (byte < 128) {
            add_event(input, &depth, SJ_EVENT_LEAVE, byte % 8);
        } else if (byte < 160) {
            end_last(input, byte < 150 ? SJ_ENDING_UNWOUND : SJ_ENDING_TRUNCATED);
        } else if (byte < 170) {
            add_gap(input, 1 + byte % 8);
        } else {
            const uint32_t back = sj_read_u8(reader) * (1 + byte % 16U);
            repeat(input, &depth, back, sj_read_u8(reader) * 64U);
        }
    }
}

static void must(sj_status status)
{
    if (status != SJ_OK) {
        abort();
    }
}

static void compare(const sj_callgraph *one, const sj_callgraph *other)
{
    if (sj_callgraph_node_count(one) != sj_callgraph_node_count(other)) {
        abort();
    }
    for (uint32_t i = 0; i < sj_callgraph_node_count(one); i++) {
        const sj_path_node *node = sj_callgraph_node(one, i);
        const sj_path_node *like = sj_callgraph_node(other, i);
        if (node->calls != like->calls || node->total_ticks != like->total_ticks ||
            node->self_ticks != like->self_ticks || node->unwound != like->unwound ||
            node->untrusted != like->untrusted || node->min_ticks != like->min_ticks ||
            node->max_ticks != like->max_ticks) {
            abort();
        }
    }
}

static void apply_both(const sj_block *block)
{
    sj_callgraph *graphs[2];
    sj_block_summary summaries[2];
    sj_block plain = *block;
    plain.repeat_count = 0;
    must(sj_callgraph_new(&graphs[0]));
    must(sj_callgraph_new(&graphs[1]));
    must(sj_callgraph_apply(graphs[0], block, NULL, NULL, &summaries[0]));
    must(sj_callgraph_apply(graphs[1], &plain, NULL, NULL, &summaries[1]));
    compare(graphs[0], graphs[1]);
    if (summaries[0].late_count != summaries[1].late_count ||
        summaries[0].max_duration_ticks != summaries[1].max_duration_ticks) {
        abort();
    }
    sj_callgraph_free(graphs[0]);
    sj_callgraph_free(graphs[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sj_block_encoder *encoder;
    static sj_block_decoder *decoder;
    if (encoder == NULL) {
        must(sj_block_encoder_new(&encoder));
        must(sj_block_decoder_new(&decoder));
    }
    sj_reader reader = sj_reader_of(data, size);
    const uint32_t open = sj_read_u8(&reader) % (FRAMES + 1);
    for (uint32_t i = 0; i < open; i++) {
        frames[i] = (sj_frame){.call_index = i, .start_ticks = 100 + i, .function = 1 + i % 3};
    }
    sj_block_input input = {.header = {.kind = SJ_BLOCK_CALLS,
                                       .stream = 1,
                                       .first_event = 9000,
                                       .first_call = 4000,
                                       .first_ticks = 1000,
                                       .last_ticks = 1000,
                                       .clock_step = 1,
                                       .open_depth = open},
                            .frames = frames,
                            .events = events,
                            .endings = endings,
                            .gaps = gaps};
    make_input(&reader, &input);
    const size_t bound = sj_block_bound(&input);
    uint8_t *bytes = malloc(bound);
    size_t encoded;
    sj_block block;
    must(sj_block_encode(encoder, &input, bytes, bound, &encoded));
    must(sj_block_decode(decoder, (sj_slice){bytes, encoded}, SJ_WANT_ALL, &block));
    apply_both(&block);
    free(bytes);
    return 0;
}
