#include "proto/callgraph/stack_walk.h"

#include "proto/base/array.h"
#include "proto/callgraph/block_check.h"

#include <stdlib.h>

static sj_status push(sj_stack_walk *walk, const sj_stack_frame *frame)
{
    SJ_TRY(sj_array_reserve(&walk->frames, &walk->capacity, walk->count, 1, sizeof(*walk->frames)));
    walk->frames[walk->count++] = *frame;
    return SJ_OK;
}

sj_status sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                              const sj_stack_frame *deep)
{
    const sj_block_header *header = &block->header;
    walk->trust = sj_call_trust_of(header);
    walk->next_call = header->first_call;
    walk->kept_frames = header->stack_frames;
    for (size_t i = 0; i < header->stack_frames; ++i) {
        SJ_TRY(push(walk, &deep[i]));
    }
    for (size_t i = 0; i < block->frame_count; ++i) {
        SJ_TRY(push(walk, &block->frames[i]));
    }
    return SJ_OK;
}

void sj_stack_walk_deinit(sj_stack_walk *walk)
{
    free(walk->frames);
    walk->frames = NULL;
}

static sj_status enter(sj_stack_walk *walk, const sj_block *block, size_t event)
{
    const uint32_t symbol = sj_block_symbol(block, event);
    const bool is_untimed = block->untimed != NULL && block->untimed[symbol] != 0;
    if (block->tails != NULL && block->tails[symbol] == 1 && walk->count > 0) {
        walk->frames[walk->count - 1].jumped_ticks = block->ticks[event];
    }
    const sj_stack_frame frame = {.call_index = walk->next_call++,
                                  .start_ticks = block->ticks[event],
                                  .function = block->functions[symbol - 1],
                                  .flags = sj_call_trust_enter(&walk->trust) |
                                           (is_untimed ? (uint32_t)SJ_CALL_UNTIMED : 0u)};
    return push(walk, &frame);
}

static sj_status leave(sj_stack_walk *walk, uint64_t ticks, uint32_t ending)
{
    if (walk->count == 0) {
        return SJ_OK;
    }
    const uint32_t depth = (uint32_t)walk->count - 1;
    if (ending == SJ_ENDING_OPEN && walk->open_call != NULL) {
        sj_stack_frame open = walk->frames[depth];
        open.flags = sj_stack_walk_flags(walk, depth);
        SJ_TRY(walk->open_call(walk->context, &open, depth));
    }
    if (depth > 0) {
        walk->frames[depth - 1].child_ticks += ticks - walk->frames[depth].start_ticks;
    }
    walk->count = depth;
    walk->kept_frames = depth < walk->kept_frames ? depth : walk->kept_frames;
    sj_call_trust_leave(&walk->trust, depth);
    return SJ_OK;
}

/* Returns how the call that leaves at `event` ended. `*next` is the index of the next unused
 * ending. */
static uint32_t ending_at(const sj_block *block, size_t event, size_t *next)
{
    if (*next < block->ending_count && block->endings[*next].event == event) {
        return block->endings[(*next)++].ending;
    }
    return SJ_ENDING_RETURNED;
}

sj_status sj_stack_walk_run(sj_stack_walk *walk, const sj_block *block)
{
    size_t gap = 0, ending = 0;
    for (size_t i = 0; i <= block->header.event_count; ++i) {
        for (; gap < block->gap_count && block->gaps[gap].before_event <= i; ++gap) {
            walk->next_call += block->gaps[gap].calls;
            sj_call_trust_gap(&walk->trust, block->gaps[gap].reason, (uint32_t)walk->count);
        }
        if (i == block->header.event_count) {
            break;
        }
        SJ_TRY(sj_block_symbol(block, i) != SJ_EVENT_LEAVE
                   ? enter(walk, block, i)
                   : leave(walk, block->ticks[i], ending_at(block, i, &ending)));
    }
    return SJ_OK;
}
