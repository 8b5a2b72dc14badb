/* Implements the call graph. sj_callgraph_apply checks a block before the graph changes. replay.c
 * then replays the block's events. A graph that only measures blocks is flat: the root has one
 * child for each function. */
#include "proto/callgraph/callgraph.h"
#include "proto/base/array.h"

#include "proto/callgraph/block_check.h"
#include "proto/callgraph/replay.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GAUGE_NODES = 65536 };

sj_status sj_callgraph_new(sj_callgraph **graph)
{
    sj_callgraph *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = sj_path_nodes_init(&made->paths);
    if (status != SJ_OK) {
        sj_callgraph_free(made);
        return status;
    }
    *graph = made;
    return SJ_OK;
}

void sj_callgraph_free(sj_callgraph *graph)
{
    if (graph == NULL) {
        return;
    }
    sj_path_nodes_deinit(&graph->paths);
    free(graph->stack);
    free(graph->symbols);
    free(graph->late);
    free(graph->key);
    free(graph->samples);
    free(graph->open);
    sj_slow_calls_deinit(&graph->slow);
    sj_block_costs_deinit(&graph->costs);
    free(graph);
}

/* Copies the frames that the block needs to graph->key, outermost first. Stores in `*looked_up` how
 * many of these frames come from stored stacks. Changes no other part of the graph. Returns
 * SJ_ENOTFOUND if the block needs stored frames and `lookup` is NULL. */
static sj_status gather_frames(sj_callgraph *graph, const sj_block *block,
                               const sj_block_extent *extent, sj_stack_lookup lookup,
                               void *lookup_context, uint32_t *looked_up)
{
    const uint32_t prefix = block->header.stack_frames;
    *looked_up = 0;
    if (prefix > 0 &&
        (extent->min_depth < prefix || sj_callgraph_find_prefix(graph, &block->header) == NULL)) {
        *looked_up = prefix;
    }
    SJ_TRY(sj_array_reserve(&graph->key, &graph->key_capacity, 0,
                            (size_t)*looked_up + block->frame_count, sizeof(*graph->key)));
    if (*looked_up > 0) {
        if (lookup == NULL) {
            return SJ_ENOTFOUND;
        }
        SJ_TRY(lookup(lookup_context, block->header.stream, block->header.stack_reference, prefix,
                      graph->key));
    }
    if (block->frame_count > 0) {
        memcpy(graph->key + *looked_up, block->frames, block->frame_count * sizeof(*graph->key));
    }
    return sj_block_check_frames(graph->key, *looked_up + block->frame_count,
                                 block->header.first_ticks);
}

void sj_callgraph_list_open(sj_callgraph *graph)
{
    graph->lists_open = true;
}

sj_status sj_callgraph_apply(sj_callgraph *graph, const sj_block *block, sj_stack_lookup lookup,
                             void *lookup_context, sj_block_summary *summary)
{
    *summary = (sj_block_summary){0};
    sj_block_extent extent;
    uint32_t looked_up;
    SJ_TRY(sj_block_check(block, &extent));
    SJ_TRY(gather_frames(graph, block, &extent, lookup, lookup_context, &looked_up));
    const size_t held = looked_up + block->frame_count;
    const size_t most = held + (extent.max_depth - block->header.open_depth) + 1;
    SJ_TRY(sj_array_reserve(&graph->stack, &graph->stack_capacity, 0, most, sizeof(*graph->stack)));
    graph->stack[0] = (sj_replay_frame){0};
    if (graph->lists_open) {
        const size_t listed = most < SJ_BLOCK_MAX_INLINE_FRAMES ? most : SJ_BLOCK_MAX_INLINE_FRAMES;
        SJ_TRY(sj_array_reserve(&graph->open, &graph->open_capacity, 0, listed + 1,
                                sizeof(*graph->open)));
    }
    SJ_TRY(sj_replay_block(graph, block, looked_up, summary));
    summary->ended_calls = block->header.event_count - extent.entered;
    summary->max_depth = extent.max_entered_depth;
    return SJ_OK;
}

sj_status sj_callgraph_measure(sj_callgraph *gauge, const sj_block *block, sj_stack_lookup lookup,
                               void *lookup_context, sj_block_summary *summary)
{
    if (!gauge->flat || gauge->paths.count > MOST_GAUGE_NODES) {
        gauge->flat = false; /* until sj_path_nodes_init succeeds */
        sj_path_nodes_deinit(&gauge->paths);
        SJ_TRY(sj_path_nodes_init(&gauge->paths));
        gauge->flat = true;
        gauge->slow.floor_ticks = UINT64_MAX; /* records no call as slow */
    }
    memset(gauge->prefixes, 0, sizeof(gauge->prefixes)); /* cached prefixes of other sessions */
    const sj_status status = sj_callgraph_apply(gauge, block, lookup, lookup_context, summary);
    for (size_t i = 0; i < summary->sample_count; i++) {
        gauge->samples[i] = 0;
    }
    return status;
}

sj_status sj_callgraph_restore(sj_callgraph *graph, const sj_path_node *node)
{
    return sj_path_nodes_restore(&graph->paths, node);
}

sj_status sj_callgraph_merge(sj_callgraph *graph, const sj_path_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i].parent > i || nodes[i].function == 0) {
            return SJ_ECORRUPT;
        }
    }
    uint32_t *places = calloc((size_t)count + 1, sizeof(*places));
    sj_status status = places != NULL ? SJ_OK : SJ_ENOMEM;
    for (uint32_t i = 0; i < count && status == SJ_OK; i++) {
        const uint32_t place =
            sj_path_nodes_child(&graph->paths, places[nodes[i].parent], nodes[i].function);
        status = place != SJ_NO_NODE ? sj_path_nodes_merge(&graph->paths, place, &nodes[i])
                                     : sj_path_nodes_failure(&graph->paths);
        places[i + 1] = place;
    }
    free(places);
    return status;
}

sj_status sj_callgraph_fold_rare(sj_callgraph *graph, uint32_t keep, sj_path_folding *folding)
{
    *folding = (sj_path_folding){0};
    SJ_TRY(sj_path_nodes_fold_rare(&graph->paths, keep, folding));
    sj_slow_calls_move(&graph->slow, folding->moved, folding->moved_count);
    memset(graph->prefixes, 0, sizeof(graph->prefixes));
    return SJ_OK;
}

void sj_path_folding_deinit(sj_path_folding *folding)
{
    free(folding->moved);
    *folding = (sj_path_folding){0};
}

uint32_t sj_callgraph_node_count(const sj_callgraph *graph)
{
    return graph->paths.count;
}

sj_path_node sj_callgraph_node(const sj_callgraph *graph, uint32_t node)
{
    return node < graph->paths.count ? sj_path_nodes_get(&graph->paths, node) : (sj_path_node){0};
}

bool sj_callgraph_is_nested_edge(const sj_callgraph *graph, uint32_t node)
{
    return node < graph->paths.count && sj_path_nodes_is_nested(&graph->paths, node);
}

const sj_path_cost *sj_callgraph_cost(const sj_callgraph *graph, uint32_t node)
{
    return node < graph->paths.count ? sj_path_costs_of(&graph->paths, node) : NULL;
}

size_t sj_callgraph_cost_count(const sj_callgraph *graph)
{
    return graph->paths.cost_count;
}

const sj_path_cost *sj_callgraph_cost_at(const sj_callgraph *graph, size_t place)
{
    return place < graph->paths.cost_count ? &graph->paths.costs[place] : NULL;
}

sj_status sj_callgraph_restore_cost(sj_callgraph *graph, uint32_t node, const sj_path_cost *cost)
{
    return sj_path_costs_add(&graph->paths, node, cost);
}

sj_status sj_callgraph_settle(sj_callgraph *graph)
{
    return sj_path_nodes_settle(&graph->paths);
}

const uint32_t *sj_callgraph_dirty(const sj_callgraph *graph, size_t *count)
{
    *count = graph->paths.dirty_count;
    return graph->paths.dirty;
}

sj_status sj_callgraph_fold_histograms(sj_callgraph *graph)
{
    return sj_path_nodes_fold(&graph->paths);
}

const sj_histogram *sj_callgraph_function_histogram(const sj_callgraph *graph, uint32_t function)
{
    return sj_function_histograms_find(&graph->paths.functions, function);
}

void sj_callgraph_clean(sj_callgraph *graph)
{
    sj_path_nodes_clean(&graph->paths);
}

void sj_callgraph_limit(sj_callgraph *graph, uint32_t most)
{
    graph->paths.most = most;
}

sj_slow_calls *sj_callgraph_slow_calls(sj_callgraph *graph)
{
    return &graph->slow;
}
