/* Design notes. The builder visits the events once, with a stack of rows. While a call is open, its
 * `selves` is minus the duration of its ended callees. The exit adds the duration of the call
 * itself. Only the outermost calls can be uncertain. So two comparisons decide whether an exit
 * needs leave_doubtful(). */
#include "collector-server/query/block_rows.h"

#include "proto/block/call_trust.h"

#include <stdlib.h>

typedef struct row_builder {
    sj_block_rows *rows;
    const sj_block *block;
    uint32_t *stack; /* rows->open: the rows whose calls are open now */
    size_t top;
    uint32_t base_depth; /* number of calls open at the block's start that are still open */
    size_t next_row;
    uint64_t first_index; /* index of row 0 in the stream, plus the calls lost in gaps so far */
    sj_call_trust trust;
    size_t tail_call;        /* index of the next tail call in the block */
    sj_row_call tail_caller; /* call that makes the next tail call */
    /* The outermost `doubtful_depth` open calls may get flags when they end. If `doubtful_entry`,
     * each call entered now gets flags, too. */
    uint32_t doubtful_depth;
    bool doubtful_entry;
} row_builder;

static void *grow(void *old, size_t count, size_t size, bool *failed)
{
    void *grown = realloc(old, count * size);
    if (grown == NULL) {
        *failed = true;
        return old;
    }
    return grown;
}

sj_status sj_block_rows_reserve(sj_block_rows *rows, size_t count)
{
    if (count <= rows->capacity) {
        return SJ_OK;
    }
    bool failed = false;
    rows->symbols = grow(rows->symbols, count, sizeof(*rows->symbols), &failed);
    rows->depths = grow(rows->depths, count, sizeof(*rows->depths), &failed);
    rows->parents = grow(rows->parents, count, sizeof(*rows->parents), &failed);
    rows->indexes = grow(rows->indexes, count, sizeof(*rows->indexes), &failed);
    rows->endings = grow(rows->endings, count, sizeof(*rows->endings), &failed);
    rows->flags = grow(rows->flags, count, sizeof(*rows->flags), &failed);
    rows->starts = grow(rows->starts, count, sizeof(*rows->starts), &failed);
    rows->ends = grow(rows->ends, count, sizeof(*rows->ends), &failed);
    rows->selves = grow(rows->selves, count, sizeof(*rows->selves), &failed);
    rows->lefts = grow(rows->lefts, count, sizeof(*rows->lefts), &failed);
    rows->tail_callers = grow(rows->tail_callers, count, sizeof(*rows->tail_callers), &failed);
    rows->frame_parents = grow(rows->frame_parents, count, sizeof(*rows->frame_parents), &failed);
    rows->open = grow(rows->open, count, sizeof(*rows->open), &failed);
    if (failed) {
        return SJ_ENOMEM;
    }
    rows->capacity = count;
    return SJ_OK;
}

void sj_block_rows_deinit(sj_block_rows *rows)
{
    free(rows->symbols);
    free(rows->depths);
    free(rows->parents);
    free(rows->indexes);
    free(rows->endings);
    free(rows->flags);
    free(rows->starts);
    free(rows->ends);
    free(rows->selves);
    free(rows->lefts);
    free(rows->tail_callers);
    free(rows->frame_parents);
    free(rows->open);
    *rows = (sj_block_rows){0};
}

/* Returns the innermost open call: a row, or a call that was open at the block's start. */
static sj_row_call innermost(const row_builder *builder)
{
    if (builder->top != 0) {
        return builder->stack[builder->top - 1];
    }
    return builder->base_depth != 0
               ? SJ_CALL_OF_FRAME | ((builder->base_depth - 1) & SJ_CALL_DEPTH_MASK)
               : SJ_NO_CALL;
}

/* Updates doubtful_depth and doubtful_entry. Call it after each change of `trust`. */
static void note_doubt(row_builder *builder)
{
    const sj_call_trust *trust = &builder->trust;
    const uint32_t flagged = sj_call_trust_flagged(trust);
    builder->doubtful_depth = flagged > trust->uncertain_depth ? flagged : trust->uncertain_depth;
    builder->doubtful_entry = trust->uncertain_depth != 0;
}

static uint32_t enter_doubtful(row_builder *builder)
{
    const uint32_t flags = sj_call_trust_enter(&builder->trust);
    note_doubt(builder);
    return flags;
}

static inline void enter(row_builder *builder, size_t event, uint32_t symbol, bool times)
{
    sj_block_rows *rows = builder->rows;
    const size_t row = builder->next_row++;
    rows->symbols[row] = symbol - 1;
    rows->depths[row] = builder->base_depth + (uint32_t)builder->top;
    rows->parents[row] = builder->top != 0 ? builder->stack[builder->top - 1] : SJ_ROW_NO_PARENT;
    rows->indexes[row] = builder->first_index + row;
    rows->endings[row] = SJ_NOT_ENDED;
    rows->flags[row] =
        __builtin_expect(builder->doubtful_entry, 0) ? (uint8_t)enter_doubtful(builder) : 0;
    if (times) {
        rows->starts[row] = builder->block->ticks[event];
        rows->selves[row] = 0;
        rows->lefts[row] = 0;
    }
    if (__builtin_expect(rows->has_tail_calls, 0)) {
        rows->tail_callers[row] = SJ_NO_CALL;
        rows->frame_parents[row] = innermost(builder);
    }
    builder->stack[builder->top++] = (uint32_t)row;
}

/* Sets the flags of the innermost open call before it ends, and updates `trust`. A call that was
 * open at the block's start has no row, and gets no flags. */
static void leave_doubtful(row_builder *builder)
{
    const uint32_t index = builder->base_depth + (uint32_t)builder->top - 1;
    if (builder->top != 0) {
        const uint32_t row = builder->stack[builder->top - 1];
        builder->rows->flags[row] |= (uint8_t)sj_call_trust_flags(&builder->trust, index);
    }
    sj_call_trust_leave(&builder->trust, index);
    note_doubt(builder);
}

static inline bool leave(row_builder *builder, size_t event, uint32_t ending, bool times)
{
    sj_block_rows *rows = builder->rows;
    if (builder->top == 0 && builder->base_depth == 0) {
        return false;
    }
    if (__builtin_expect(builder->base_depth + builder->top <= builder->doubtful_depth ||
                             builder->doubtful_entry || ending == SJ_ENDING_TRUNCATED,
                         0)) {
        leave_doubtful(builder);
    }
    if (builder->top == 0) {
        --builder->base_depth;
        return true;
    }
    const uint32_t row = builder->stack[--builder->top];
    rows->endings[row] = (uint8_t)ending;
    const uint32_t parent = rows->parents[row];
    if (times) {
        const uint64_t end = builder->block->ticks[event];
        const uint64_t duration = end - rows->starts[row];
        rows->ends[row] = end;
        rows->selves[row] += duration;
        if (parent != SJ_ROW_NO_PARENT) {
            rows->selves[parent] -= duration;
        }
    }
    return true;
}

/* Replays the events [from, to). `wide` selects symbols32 instead of symbols16. Each caller passes
 * constants for `wide` and `times`, so that the compiler specializes the loop. */
static inline bool run(row_builder *builder, size_t from, size_t to, bool wide, bool times)
{
    const sj_block *block = builder->block;
    for (size_t event = from; event < to; ++event) {
        const uint32_t symbol = wide ? block->symbols32[event] : block->symbols16[event];
        if (symbol != SJ_EVENT_LEAVE) {
            if (symbol > block->function_count || builder->next_row == builder->rows->count) {
                return false;
            }
            enter(builder, event, symbol, times);
        } else if (!leave(builder, event, SJ_ENDING_RETURNED, times)) {
            return false;
        }
    }
    return true;
}

static bool run_any(row_builder *builder, size_t from, size_t to, bool times)
{
    if (builder->block->symbols16 != NULL) {
        return times ? run(builder, from, to, false, true) : run(builder, from, to, false, false);
    }
    return times ? run(builder, from, to, true, true) : run(builder, from, to, true, false);
}

static void pass_gap(row_builder *builder, const sj_gap *gap)
{
    builder->first_index += gap->calls;
    sj_call_trust_gap(&builder->trust, gap->reason, builder->base_depth + (uint32_t)builder->top);
    note_doubt(builder);
}

/* Handles a LEAVE with an ending other than a return. */
static bool leave_specially(row_builder *builder, const sj_block_ending *ending, bool times)
{
    const sj_block *block = builder->block;
    const uint32_t symbol = block->symbols16 != NULL ? block->symbols16[ending->event]
                                                     : block->symbols32[ending->event];
    return symbol == SJ_EVENT_LEAVE && leave(builder, ending->event, ending->ending, times);
}

/* Handles an ENTER by a tail call. The caller's stack frame has ended. So the callee's stack frame
 * returns to where the caller's frame would have returned. */
static bool enter_jumped_to(row_builder *builder, size_t event, bool times)
{
    sj_block_rows *rows = builder->rows;
    const sj_row_call caller = builder->tail_caller;
    const size_t row = builder->next_row;
    if (caller == SJ_NO_CALL || !run_any(builder, event, event + 1, times) ||
        builder->next_row == row) {
        return false;
    }
    rows->tail_callers[row] = caller;
    if ((caller & SJ_CALL_OF_FRAME) != 0) {
        rows->frame_parents[row] = SJ_CALL_BELOW_FRAME | (caller & SJ_CALL_DEPTH_MASK);
    } else {
        rows->frame_parents[row] = rows->frame_parents[caller];
        if (times) {
            rows->lefts[caller] = builder->block->ticks[event];
        }
    }
    return true;
}

/* Returns the next event at which the replay must stop for a tail call. A tail call has two stops:
 * the first of the exits that directly precede it, and its ENTER. At the first stop, notes the
 * innermost call as the caller of the tail call. */
static size_t await_tail_call(row_builder *builder, size_t event)
{
    const sj_block *block = builder->block;
    if (builder->tail_call == block->tail_call_count) {
        return block->header.event_count;
    }
    const sj_block_tail_call *next = &block->tail_calls[builder->tail_call];
    const size_t from = next->event - next->ended;
    if (event < from) {
        return from;
    }
    if (event == from) {
        builder->tail_caller = innermost(builder);
    }
    return next->event;
}

/* Returns the first event, from `event` on, before which the replay must stop. run_rare_case()
 * handles that event. */
static size_t next_stop(row_builder *builder, size_t event, size_t gap, size_t ending)
{
    const sj_block *block = builder->block;
    size_t stop = await_tail_call(builder, event);
    if (gap < block->gap_count && block->gaps[gap].before_event < stop) {
        stop = block->gaps[gap].before_event;
    }
    if (ending < block->ending_count && block->endings[ending].event < stop) {
        stop = block->endings[ending].event;
    }
    return stop;
}

/* Replays one event at which the replay has stopped: a LEAVE with an ending, an ENTER by a tail
 * call, or an ordinary event. */
static bool run_rare_case(row_builder *builder, size_t event, size_t *ending, bool times)
{
    const sj_block *block = builder->block;
    if (*ending < block->ending_count && block->endings[*ending].event == event) {
        return leave_specially(builder, &block->endings[(*ending)++], times);
    }
    if (builder->tail_call < block->tail_call_count &&
        block->tail_calls[builder->tail_call].event == event) {
        builder->tail_call++;
        return enter_jumped_to(builder, event, times);
    }
    return run_any(builder, event, event + 1, times);
}

static sj_status replay(row_builder *builder, bool times)
{
    const sj_block *block = builder->block;
    size_t event = 0;
    size_t gap = 0;
    size_t ending = 0;
    while (event < block->header.event_count) {
        while (gap < block->gap_count && block->gaps[gap].before_event <= event) {
            pass_gap(builder, &block->gaps[gap++]);
        }
        const size_t stop = next_stop(builder, event, gap, ending);
        if (stop < event || !(stop > event ? run_any(builder, event, stop, times)
                                           : run_rare_case(builder, event++, &ending, times))) {
            return SJ_ECORRUPT;
        }
        event = stop > event ? stop : event;
    }
    for (; gap < block->gap_count; ++gap) {
        pass_gap(builder, &block->gaps[gap]);
    }
    return SJ_OK;
}

sj_status sj_block_rows_build(sj_block_rows *rows, const sj_block *block, bool times)
{
    rows->count = block->header.call_count;
    rows->has_tail_calls = block->tail_call_count != 0;
    SJ_TRY(sj_block_rows_reserve(rows, rows->count != 0 ? rows->count : 1));
    row_builder builder = {.rows = rows,
                           .block = block,
                           .stack = rows->open,
                           .base_depth = block->header.open_depth,
                           .first_index = block->header.first_call,
                           .trust = sj_call_trust_of(&block->header)};
    note_doubt(&builder);
    SJ_TRY(replay(&builder, times));
    if (builder.next_row != rows->count) {
        return SJ_ECORRUPT;
    }
    for (size_t row = 0; block->untimed != NULL && row < rows->count; row++) {
        rows->flags[row] |= (uint8_t)(block->untimed[rows->symbols[row] + 1] * SJ_CALL_UNTIMED);
    }
    rows->open_count = builder.top;
    for (size_t i = 0; builder.doubtful_depth != 0 && i < builder.top; ++i) {
        rows->flags[rows->open[i]] |=
            (uint8_t)sj_call_trust_flags(&builder.trust, builder.base_depth + (uint32_t)i);
    }
    return SJ_OK;
}
