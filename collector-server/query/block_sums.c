/* Design notes
 *
 * One pass over the events of a block adds up the times per function. A stack holds the open calls.
 * The pass does not create rows of calls. */
#include "collector-server/query/block_sums.h"

#include "collector-server/query/lost_calls.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

typedef struct sj_summed_call {
    uint64_t start;
    uint64_t child;
    uint32_t slot;
    uint32_t row; /* index among the calls of the block */
} sj_summed_call;

/* The state of one sj_block_summer_add. */
typedef struct block_walk {
    sj_block_summer *summer;
    const sj_block *block;
    sj_block_sums *sums;
    const sj_open_sum *carried;
    size_t carried_count;
    uint64_t first, last; /* window in ticks: only calls that start in it count */
} block_walk;

void sj_block_sums_deinit(sj_block_sums *sums)
{
    free(sums->frames);
    free(sums->ends);
    free(sums->functions);
    free(sums->sums);
    free(sums->open);
    *sums = (sj_block_sums){0};
}

void sj_block_summer_deinit(sj_block_summer *summer)
{
    free(summer->slot_of);
    free(summer->active);
    free(summer->slot_of_function);
    free(summer->stack);
    *summer = (sj_block_summer){0};
}

static sj_status reserve(block_walk *walk)
{
    sj_block_summer *summer = walk->summer;
    sj_block_sums *sums = walk->sums;
    const sj_block *block = walk->block;
    const size_t entries = block->function_count;
    uint32_t highest = 0;
    for (size_t i = 0; i < entries; ++i) {
        highest = block->functions[i] > highest ? block->functions[i] : highest;
    }
    SJ_TRY(sj_array_reserve(&summer->slot_of, &summer->slot_capacity, 0, entries,
                            sizeof(*summer->slot_of)));
    SJ_TRY(sj_array_reserve(&summer->active, &summer->active_capacity, 0, entries,
                            sizeof(*summer->active)));
    SJ_TRY(sj_array_reserve(&summer->slot_of_function, &summer->function_capacity, 0,
                            (size_t)highest + 1, sizeof(*summer->slot_of_function)));
    SJ_TRY(sj_array_reserve(&summer->stack, &summer->stack_capacity, 0,
                            sj_scan_most_open(block) + 1, sizeof(*summer->stack)));
    SJ_TRY(sj_array_reserve(&sums->functions, &sums->function_capacity, 0, entries,
                            sizeof(*sums->functions)));
    SJ_TRY(sj_array_reserve(&sums->sums, &sums->sum_capacity, 0, entries, sizeof(*sums->sums)));
    SJ_TRY(sj_array_reserve(&sums->frames, &sums->frame_capacity, 0, block->frame_count,
                            sizeof(*sums->frames)));
    const uint32_t most_ends = block->header.open_depth < block->header.event_count
                                   ? block->header.open_depth
                                   : block->header.event_count;
    return sj_array_reserve(&sums->ends, &sums->end_capacity, 0, most_ends, sizeof(*sums->ends));
}

static void begin(block_walk *walk)
{
    sj_block_summer *summer = walk->summer;
    sj_block_sums *sums = walk->sums;
    const sj_block *block = walk->block;
    sums->open_depth = block->header.open_depth;
    sums->stack_frames = block->header.stack_frames;
    sums->has_all_ends = true;
    sums->function_count = sums->end_count = sums->open_count = 0;
    sums->frame_count = block->frame_count;
    for (size_t i = 0; i < block->frame_count; ++i) {
        sums->frames[i] = block->frames[i].call_index;
    }
    for (size_t i = 0; i < block->function_count; ++i) {
        const uint32_t function = block->functions[i];
        if (summer->slot_of_function[function] == 0) {
            sums->functions[sums->function_count] = function;
            sums->sums[sums->function_count] = (sj_function_sum){.min_ticks = UINT64_MAX};
            summer->active[sums->function_count] = 0;
            summer->slot_of_function[function] = (uint32_t)++sums->function_count;
        }
        summer->slot_of[i] = summer->slot_of_function[function] - 1;
    }
}

static uint32_t carried_at(const block_walk *walk, uint32_t depth)
{
    for (size_t i = walk->carried_count; i-- > 0 && walk->carried[i].depth >= depth;) {
        if (walk->carried[i].depth == depth) {
            return walk->carried[i].function;
        }
    }
    return 0;
}

/* Ends the call at `depth`, which was open at the start of the block. Appends to `ends` the time of
 * its function's ended calls in the block so far, without nested calls. The caller has ended all
 * calls that were entered before. */
static void end_frame(const block_walk *walk, uint32_t depth)
{
    const sj_block *block = walk->block;
    sj_block_sums *sums = walk->sums;
    const uint32_t deep = block->header.stack_frames;
    const bool is_inline = depth >= deep && depth - deep < block->frame_count;
    const uint32_t function =
        is_inline ? block->frames[depth - deep].function : carried_at(walk, depth);
    const uint32_t slot = function != 0 && function < walk->summer->function_capacity
                              ? walk->summer->slot_of_function[function]
                              : 0;
    sums->has_all_ends = sums->has_all_ends && is_inline;
    sums->ends[sums->end_count++] =
        slot != 0 ? sums->sums[slot - 1].duration_ticks - sums->sums[slot - 1].nested_ticks : 0;
}

/* Adds up the calls that are entered and left in the block. `wide`: symbols have 32 bits, not 16.
 * `windowed`: only calls that start in the window count. Both are constants where this function is
 * inlined.
 *
 * Returns the number of calls that are still on the stack: entered in the block, and open at its
 * end. Returns SIZE_MAX if the events contradict each other. */
static inline __attribute__((always_inline)) size_t add_events(const block_walk *walk, bool wide,
                                                               bool windowed)
{
    /* The loop uses a copy of the block. Otherwise the compiler would read the block's members
     * again after each write to the sums, which could alias them. */
    const sj_block block = *walk->block;
    const uint64_t *ticks = block.ticks;
    const uint64_t first = walk->first;
    const uint64_t last = walk->last;
    const size_t event_count = block.header.event_count;
    sj_summed_call *stack = walk->summer->stack;
    const uint32_t *slot_of = walk->summer->slot_of;
    uint32_t *active = walk->summer->active;
    sj_function_sum *sums = walk->sums->sums;
    size_t top = 0;
    uint32_t row = 0;
    uint32_t base = block.header.open_depth;
    for (size_t event = 0; event < event_count; ++event) {
        const uint32_t symbol = wide ? block.symbols32[event] : block.symbols16[event];
        const uint64_t now = ticks[event];
        if (symbol != SJ_EVENT_LEAVE) {
            if (symbol > block.function_count || row == block.header.call_count) {
                return SIZE_MAX;
            }
            const uint32_t slot = slot_of[symbol - 1];
            const bool counts = !windowed || (now >= first && now <= last);
            if (event + 1 < event_count &&
                (wide ? block.symbols32[event + 1] : block.symbols16[event + 1]) ==
                    SJ_EVENT_LEAVE) { /* a call without callees */
                const uint64_t duration = ticks[++event] - now;
                if (counts) {
                    sj_function_sum_add(&sums[slot], duration, duration, active[slot] == 0);
                }
                if (top != 0) {
                    stack[top - 1].child += duration;
                }
                ++row;
                continue;
            }
            active[slot] += counts;
            stack[top++] = (sj_summed_call){.start = now, .slot = slot, .row = row++};
            continue;
        }
        if (top == 0) {
            if (base == 0) {
                return SIZE_MAX;
            }
            end_frame(walk, --base);
            continue;
        }
        const sj_summed_call *call = &stack[--top];
        const uint64_t duration = now - call->start;
        if (!windowed || (call->start >= first && call->start <= last)) {
            sj_function_sum_add(&sums[call->slot], duration, duration - call->child,
                                --active[call->slot] == 0);
        }
        if (top != 0) {
            stack[top - 1].child += duration;
        }
    }
    return row == block.header.call_count ? top : SIZE_MAX;
}

static size_t add_any_events(const block_walk *walk, bool windowed)
{
    if (walk->block->symbols16 != NULL) {
        return windowed ? add_events(walk, false, true) : add_events(walk, false, false);
    }
    return windowed ? add_events(walk, true, true) : add_events(walk, true, false);
}

/* Lists the open calls that started in the window. `top` calls of the block are open at its end. */
static sj_status list_open(block_walk *walk, size_t top)
{
    const sj_block *block = walk->block;
    sj_block_sums *sums = walk->sums;
    const sj_summed_call *stack = walk->summer->stack;
    const uint32_t base = sums->open_depth - (uint32_t)sums->end_count;
    SJ_TRY(sj_array_reserve(&sums->open, &sums->open_capacity, 0, top, sizeof(*sums->open)));
    sj_lost_calls lost = {0};
    for (size_t i = 0; i < top; ++i) {
        const sj_summed_call *call = &stack[i];
        if (call->start < walk->first || call->start > walk->last) {
            continue;
        }
        sums->open[sums->open_count++] = (sj_open_sum){
            .index = block->header.first_call + call->row +
                     sj_lost_calls_before(&lost, block, call->row),
            .start_ticks = call->start,
            .function = sums->functions[call->slot],
            .depth = base + (uint32_t)i,
        };
        ++sums->sums[call->slot].open;
    }
    return SJ_OK;
}

int sj_block_summer_add(sj_block_summer *summer, sj_block_scan *scan, const sj_open_sum *carried,
                        size_t carried_count, sj_block_sums *sums)
{
    const sj_block *block = &scan->block;
    block_walk walk = {.summer = summer,
                       .block = block,
                       .sums = sums,
                       .carried = carried,
                       .carried_count = carried_count,
                       .first = scan->session.first_start,
                       .last = scan->session.last_start};
    if (reserve(&walk) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    sums->place = scan->place;
    begin(&walk);
    const size_t top = add_any_events(&walk, block->header.first_ticks < walk.first ||
                                                 block->header.last_ticks > walk.last);
    const sj_status listed = top != SIZE_MAX ? list_open(&walk, top) : SJ_OK;
    for (size_t i = 0; i < block->function_count; ++i) {
        summer->slot_of_function[block->functions[i]] = 0;
    }
    if (top == SIZE_MAX) {
        sj_block_scan_warn(scan, "its events contradict each other");
        return SJ_SCAN_CONTRADICTION;
    }
    return listed == SJ_OK ? SQLITE_OK : SQLITE_NOMEM;
}
