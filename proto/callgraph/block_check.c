#include "proto/callgraph/block_check.h"

static const uint32_t KNOWN_CALL_FLAGS = SJ_CALL_BEFORE_RECORDING | SJ_CALL_GAP |
                                         SJ_CALL_UNCERTAIN_DEPTH | SJ_CALL_WAITED | SJ_CALL_UNTIMED;

static sj_status check_header(const sj_block *block)
{
    const sj_block_header *header = &block->header;
    const bool counts = header->kind == SJ_BLOCK_CALLS && header->stream != 0 &&
                        header->stack_frames <= header->open_depth &&
                        block->frame_count == header->open_depth - header->stack_frames &&
                        (header->stack_frames == 0 || header->stack_reference != 0);
    const bool depths = header->gap_depth <= header->open_depth &&
                        header->waited_depth <= header->open_depth &&
                        header->uncertain_depth <= header->open_depth;
    const bool columns =
        header->event_count == 0 ||
        ((block->symbols16 != NULL || block->symbols32 != NULL) && block->ticks != NULL);
    return counts && depths && columns ? SJ_OK : SJ_ECORRUPT;
}

static inline __attribute__((always_inline)) bool
check_symbols(const sj_block *block, const uint16_t *symbols16, const uint32_t *symbols32)
{
    const size_t count = block->header.event_count;
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t symbol = symbols16 != NULL ? symbols16[i] : symbols32[i];
        highest = symbol > highest ? symbol : highest;
    }
    return highest <= block->function_count;
}

static bool check_times(const sj_block *block)
{
    uint64_t before = block->header.first_ticks;
    bool bad = false;
    for (size_t i = 0; i < block->header.event_count; i++) {
        bad |= block->ticks[i] < before;
        before = block->ticks[i];
    }
    return !bad;
}

static sj_status check_marks(const sj_block *block)
{
    for (size_t i = 0; i < block->ending_count; i++) {
        const sj_block_ending *ending = &block->endings[i];
        if (ending->event >= block->header.event_count ||
            sj_block_symbol(block, ending->event) != 0 || ending->ending > SJ_ENDING_TRUNCATED ||
            (i > 0 && ending->event <= block->endings[i - 1].event)) {
            return SJ_ECORRUPT;
        }
    }
    uint64_t calls = 0;
    uint64_t events = 0;
    for (size_t i = 0; i < block->gap_count; i++) {
        const sj_gap *gap = &block->gaps[i];
        if (gap->before_event > block->header.event_count ||
            (i > 0 && gap->before_event < block->gaps[i - 1].before_event) ||
            gap->end_ticks < gap->start_ticks) {
            return SJ_ECORRUPT;
        }
        calls += gap->calls;
        events += gap->events;
    }
    const bool sums = calls == block->header.lost_calls && events == block->header.lost_events;
    return sums ? SJ_OK : SJ_ECORRUPT;
}

/* Checks symbols and times of a block that no decoder has checked. */
static bool check_events(const sj_block *block)
{
    return (block->symbols16 != NULL ? check_symbols(block, block->symbols16, NULL)
                                     : check_symbols(block, NULL, block->symbols32)) &&
           check_times(block);
}

sj_status sj_block_check(const sj_block *block, sj_block_extent *extent)
{
    SJ_TRY(check_header(block));
    for (size_t i = 0; i < block->function_count; i++) {
        if (block->functions[i] == 0 || block->functions[i] > SJ_FUNCTION_ID_MAX) {
            return SJ_ECORRUPT;
        }
    }
    const sj_block_depths depths =
        block->is_checked ? block->depths : sj_block_measure_depths(block);
    const int64_t opened = block->header.open_depth;
    const int64_t deepest = depths.entered > opened ? depths.entered : opened;
    if ((!block->is_checked && !check_events(block)) || depths.lowest < 0 ||
        depths.end != (int64_t)block->header.end_depth || deepest > (int64_t)UINT32_MAX / 2) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(check_marks(block));
    /* entered - ended = end_depth - open_depth, and entered + ended = event_count */
    const int64_t growth = (int64_t)block->header.end_depth - (int64_t)block->header.open_depth;
    *extent =
        (sj_block_extent){.entered = (uint32_t)(((int64_t)block->header.event_count + growth) / 2),
                          .min_depth = (uint32_t)depths.lowest,
                          .max_depth = (uint32_t)deepest,
                          .max_entered_depth = (uint32_t)depths.entered};
    return extent->entered == block->header.call_count ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_block_check_frames(const sj_stack_frame *frames, size_t count, uint64_t first_ticks)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t until = i + 1 < count ? frames[i + 1].start_ticks : first_ticks;
        if (frames[i].function == 0 || frames[i].function > SJ_FUNCTION_ID_MAX ||
            (frames[i].flags & ~KNOWN_CALL_FLAGS) != 0 || until < frames[i].start_ticks ||
            frames[i].child_ticks > until - frames[i].start_ticks ||
            (i > 0 && frames[i].call_index <= frames[i - 1].call_index)) {
            return SJ_ECORRUPT;
        }
    }
    return SJ_OK;
}
