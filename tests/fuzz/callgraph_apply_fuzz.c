/* Applies blocks of a hostile device: blocks that the decoder accepts, and raw block structures
 * that the decoder would never return. A refused block must not change anything, and the rows must
 * agree with the graph. */
#include "proto/callgraph/callgraph.h"
#include "tests/support/call_rows.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sj_status no_frames(void *context, uint32_t stream, uint32_t reference, uint32_t count,
                           sj_stack_frame *frames)
{
    (void)context;
    (void)stream;
    (void)reference;
    memset(frames, 0, count * sizeof(*frames));
    return count % 2 ? SJ_OK : SJ_ENOTFOUND;
}

static void apply_twice(const sj_block *block)
{
    sj_callgraph *graph;
    sj_call_reader *reader;
    if (sj_callgraph_new(&graph) != SJ_OK || sj_call_reader_new(&reader) != SJ_OK) {
        abort();
    }
    sj_block_summary summary;
    const sj_call_rows *rows;
    const sj_status applied = sj_callgraph_apply(graph, block, no_frames, NULL, &summary);
    const sj_status read = sj_call_reader_read(reader, block, no_frames, NULL, &rows);
    if (applied != SJ_OK && sj_callgraph_node_count(graph) != 1) {
        abort();
    }
    if (applied == SJ_OK && read == SJ_OK) {
        uint64_t calls = 0;
        for (uint32_t node = 1; node < sj_callgraph_node_count(graph); node++) {
            calls += sj_callgraph_node(graph, node).calls;
        }
        size_t late = summary.late_count;
        if (calls != summary.ended_calls || late > calls) {
            abort();
        }
    }
    sj_call_reader_free(reader);
    sj_callgraph_free(graph);
}

/* Builds a block structure directly from the input. */
static void apply_raw(sj_reader *reader)
{
    enum { MOST = 64 };
    sj_stack_frame frames[4];
    uint32_t functions[4];
    uint16_t symbols[MOST];
    uint64_t ticks[MOST];
    sj_block_ending endings[2];
    sj_gap gaps[2];
    sj_block block = {.frames = frames,
                      .functions = functions,
                      .symbols16 = symbols,
                      .ticks = ticks,
                      .endings = endings,
                      .gaps = gaps};
    block.header = (sj_block_header){
        .version = 1, .kind = SJ_BLOCK_CALLS, .stream = 1, .clock_step = 1, .first_ticks = 100};
    block.frame_count = sj_read_u8(reader) % 5;
    block.function_count = sj_read_u8(reader) % 5;
    block.ending_count = sj_read_u8(reader) % 3;
    block.gap_count = sj_read_u8(reader) % 3;
    block.header.event_count = sj_read_u8(reader) % MOST;
    block.header.stack_frames = sj_read_u8(reader) % 4;
    block.header.stack_reference = 1;
    block.header.open_depth = block.header.stack_frames + (uint32_t)block.frame_count;
    block.header.end_depth = block.header.open_depth;
    block.header.gap_depth = sj_read_u8(reader);
    block.header.first_event = sj_read_u8(reader) % 2;
    for (size_t i = 0; i < 4; i++) {
        frames[i] = (sj_stack_frame){.call_index = i + sj_read_u8(reader) % 2,
                                     .start_ticks = 10 * i,
                                     .child_ticks = sj_read_u8(reader) % 12,
                                     .function = sj_read_u8(reader) % 8,
                                     .flags = sj_read_u8(reader) % 32};
        functions[i] = sj_read_u8(reader) % 8;
    }
    uint64_t now = 100;
    for (size_t i = 0; i < block.header.event_count; i++) {
        const uint8_t event = sj_read_u8(reader);
        symbols[i] = event & 7;
        now += event >> 3 & 7;
        ticks[i] = now - (event == 255);
        block.header.call_count += symbols[i] != 0;
        block.header.end_depth += symbols[i] != 0 ? 1u : UINT32_MAX;
    }
    for (size_t i = 0; i < 2; i++) {
        endings[i] = (sj_block_ending){sj_read_u8(reader), sj_read_u8(reader) % 5};
        gaps[i] = (sj_gap){.before_event = sj_read_u8(reader), .reason = sj_read_u8(reader) % 9};
    }
    apply_twice(&block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_block_decoder *decoder;
    if (sj_block_decoder_new(&decoder) != SJ_OK) {
        abort();
    }
    sj_block block;
    if (sj_block_decode(decoder, (sj_slice){.data = data, .size = size}, SJ_WANT_ALL, &block) ==
            SJ_OK &&
        block.header.open_depth < 1u << 20) {
        apply_twice(&block);
    }
    sj_block_decoder_free(decoder);
    sj_reader reader = sj_reader_of(data, size);
    apply_raw(&reader);
    return 0;
}
