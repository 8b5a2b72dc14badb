#include "proto/callgraph/replay.h"

const sj_prefix_slot *sj_callgraph_find_prefix(const sj_callgraph *graph,
                                               const sj_block_header *header)
{
    for (uint32_t i = 0; i < SJ_PREFIX_SLOTS; i++) {
        const sj_prefix_slot *slot = &graph->prefixes[i];
        if (slot->reference != 0 && slot->reference == header->stack_reference &&
            slot->stream == header->stream && slot->count == header->stack_frames) {
            return slot;
        }
    }
    return NULL;
}

void sj_callgraph_keep_prefix(sj_callgraph *graph, const sj_block_header *header, uint32_t node)
{
    graph->prefixes[graph->next_prefix++ % SJ_PREFIX_SLOTS] =
        (sj_prefix_slot){.stream = header->stream,
                         .reference = header->stack_reference,
                         .count = header->stack_frames,
                         .node = node};
}
