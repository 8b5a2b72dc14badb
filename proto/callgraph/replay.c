/* Replays the events of a block with a stack of open calls and one current node. A stack entry has
 * the start of its call, the time in callees, and the node of its caller. The caller's node may
 * differ from the parent of the call's node if the call is folded (path_nodes.c).
 *
 * Three optimizations make the replay fast:
 * 1. The first probed slot of the hash table (path_nodes.h) usually has the node of a path. The
 *    function's part of the hash is computed once per block.
 * 2. Most calls are leaf calls: their LEAVE is the next event. The replay counts a leaf call at its
 *    ENTER, without a stack entry.
 * 3. Most durations change only sums and one bin. One comparison with the node's quiet range finds
 *    these durations.
 *
 * Calls of the key-frame and calls with flags are rare. They are at or below a watermark of the
 * stack, so the loop over ordinary events tests for them once per LEAVE. The events of samples, and
 * of endings other than a return, are known beforehand. The slow path replays every event of a
 * block with costs, because each of its calls may have costs. */
#include "proto/callgraph/replay.h"
#include "proto/base/array.h"
#include "proto/block/call_trust.h"

#include "proto/callgraph/block_check.h"

#include <string.h>

/* The state of the replay of one block. */
typedef struct replay {
    sj_callgraph *graph;
    const sj_block *block;
    sj_call_trust trust;
    uint32_t base;      /* number of open calls outside of the call in stack[1] */
    size_t top;         /* index of the innermost open call in `stack`; 0: none */
    size_t watermark;   /* the slow path handles a LEAVE of a call at or below this index */
    size_t key_top;     /* calls of the key-frame are at or below this index */
    size_t behind_key;  /* event after the last LEAVE of a call of the key-frame */
    size_t flagged_top; /* calls that were entered with flags are at or below this index */
    uint32_t node;
    uint32_t enter_flags;
    size_t sample_at; /* event of the next sample */
    size_t sample_count;
    size_t late_count;
    size_t ending; /* index of the block's next ending */
    uint64_t max_duration;
} replay;

static uint32_t parent_of(const sj_callgraph *graph, uint32_t caller)
{
    return graph->flat ? 0 : caller;
}

/* Pushes the calls of the key-frame, of which `looked_up` come from stored stacks. */
static sj_status open_frames(replay *run, uint32_t looked_up)
{
    sj_callgraph *graph = run->graph;
    const sj_block_header *header = &run->block->header;
    const uint32_t held = looked_up + (uint32_t)run->block->frame_count;
    run->base = header->open_depth - held;
    run->node = run->base > 0 ? sj_callgraph_find_prefix(graph, header)->node : 0;
    for (uint32_t i = 0; i < held; i++) {
        if (looked_up > 0 && i == looked_up) {
            sj_callgraph_keep_prefix(graph, header, run->node);
        }
        const sj_stack_frame *frame = &graph->key[i];
        const uint32_t caller = run->node;
        run->node = sj_path_nodes_child(&graph->paths, parent_of(graph, caller), frame->function);
        if (run->node == SJ_NO_NODE) {
            return sj_path_nodes_failure(&graph->paths);
        }
        run->top++;
        graph->stack[run->top] = (sj_replay_frame){.start = frame->start_ticks,
                                                   .child = frame->child_ticks,
                                                   .flags = frame->flags,
                                                   .place = i,
                                                   .caller = caller};
    }
    run->key_top = run->top;
    return SJ_OK;
}

/* Recomputes the watermark and the flags of the next ENTER. */
static void set_watermark(replay *run)
{
    uint32_t depth = sj_call_trust_flagged(&run->trust);
    depth = depth > run->trust.uncertain_depth ? depth : run->trust.uncertain_depth;
    run->watermark = depth > run->base ? depth - run->base : 0;
    run->watermark = run->watermark > run->key_top ? run->watermark : run->key_top;
    run->watermark = run->watermark > run->flagged_top ? run->watermark : run->flagged_top;
    run->enter_flags = run->trust.uncertain_depth > 0 ? (uint32_t)SJ_CALL_UNCERTAIN_DEPTH : 0u;
}

/* Returns the call_index of the call at stack[top]. Counts the calls that the block entered before
 * it: half of (events before its ENTER + growth of the depth). Adds the calls lost in gaps. */
static uint64_t call_index_at(const replay *run, size_t top)
{
    const sj_block *block = run->block;
    const uint32_t place = run->graph->stack[top].place;
    if (top <= run->key_top) {
        return run->graph->key[place].call_index;
    }
    uint64_t index = block->header.first_call +
                     (place + run->base + (uint32_t)top - 1 - block->header.open_depth) / 2;
    for (size_t i = 0; i < block->gap_count && block->gaps[i].before_event <= place; i++) {
        index += block->gaps[i].calls;
    }
    return index;
}

/* Adds a call to the slowest calls of its function if it is one of them. Then updates the node's
 * slow_ticks. */
static sj_status note_slow(replay *run, uint32_t number, size_t top, const sj_slow_call *ended)
{
    sj_path_line *node = &run->graph->paths.nodes[number];
    sj_slow_calls *slow = &run->graph->slow;
    if (ended->duration_ticks > sj_slow_calls_threshold(slow, node->function)) {
        sj_slow_call call = *ended;
        call.call_index = call_index_at(run, top);
        call.start_ticks = run->graph->stack[top].start;
        call.stream = run->block->header.stream;
        call.node = number;
        SJ_TRY(sj_slow_calls_add(slow, node->function, &call));
    }
    const uint64_t threshold = sj_slow_calls_threshold(slow, node->function);
    node->slow_ticks = threshold < UINT32_MAX ? (uint32_t)threshold : UINT32_MAX;
    return SJ_OK;
}

/* Returns SJ_CALL_UNTIMED if the call at stack[top] was entered without a clock, else 0. */
static uint32_t untimed_flag(const replay *run, size_t top)
{
    const uint32_t place = run->graph->stack[top].place;
    if (top <= run->key_top) {
        return run->graph->key[place].flags & SJ_CALL_UNTIMED;
    }
    return run->block->untimed != NULL &&
                   run->block->untimed[sj_block_symbol(run->block, place)] != 0
               ? (uint32_t)SJ_CALL_UNTIMED
               : 0;
}

/* Counts the ended call that was at stack[top] in node `number`. Notes it if it is slow, and
 * recomputes the node's quiet range. */
static __attribute__((noinline)) sj_status count_call(replay *run, uint32_t number, size_t top,
                                                      const sj_slow_call *ended)
{
    sj_path_nodes *paths = &run->graph->paths;
    SJ_TRY(sj_path_nodes_count(paths, number, ended->duration_ticks, ended->self_ticks));
    if (ended->duration_ticks > paths->nodes[number].slow_ticks) {
        sj_slow_call noted = *ended;
        noted.flags |= untimed_flag(run, top);
        SJ_TRY(note_slow(run, number, top, &noted));
    }
    sj_path_nodes_quieten(paths, number);
    return SJ_OK;
}

/* Returns the ENTER of the call that the LEAVE at `event` ends; SIZE_MAX if the ENTER is before
 * `first`. */
static size_t enter_of(const sj_block *block, size_t first, size_t event)
{
    for (size_t open = 1; event > first;) {
        event--;
        open = sj_block_symbol(block, event) == SJ_EVENT_LEAVE ? open + 1 : open - 1;
        if (open == 0) {
            return event;
        }
    }
    return SIZE_MAX;
}

/* Returns the time of the tail call by which a call of the key-frame ended in this block; 0 if it
 * did not end by a tail call. `event` is the call's LEAVE. The call ended by a tail call if its
 * last callee was entered by one. In a folded chain, the first call of the chain decides. */
static uint64_t jumped_at(const replay *run, size_t event)
{
    const sj_block *block = run->block;
    while (block->tails != NULL && event > run->behind_key &&
           sj_block_symbol(block, event - 1) == SJ_EVENT_LEAVE) {
        event = enter_of(block, run->behind_key, event - 1);
        if (event == SIZE_MAX) {
            return 0;
        }
        const uint32_t tail_call = block->tails[sj_block_symbol(block, event)];
        if (tail_call <= 1) {
            return tail_call == 1 ? block->ticks[event] : 0;
        }
    }
    return 0;
}

static sj_status note_late(replay *run, const sj_replay_frame *frame, size_t event, uint64_t self,
                           uint32_t ending, uint32_t flags)
{
    sj_callgraph *graph = run->graph;
    const uint64_t ticks = run->block->ticks[event];
    const uint64_t known = graph->key[frame->place].jumped_ticks;
    const uint64_t left = known != 0 ? known : jumped_at(run, event);
    SJ_TRY(sj_array_reserve(&graph->late, &graph->late_capacity, 0, run->late_count + 1,
                            sizeof(*graph->late)));
    graph->late[run->late_count++] =
        (sj_deferred_exit){.call_index = graph->key[frame->place].call_index,
                           .end_ticks = ticks,
                           .self_ticks = self,
                           .jumped_ticks = left < ticks ? left : ticks,
                           .ending = ending,
                           .flags = flags | (frame->flags & SJ_CALL_UNTIMED)};
    return SJ_OK;
}

/* Adds the ended call at stack[top] to the outline. The call must have its ENTER in this block, and
 * must be longer than the outline's floor. */
static void note_long(replay *run, size_t top, const sj_slow_call *ended)
{
    const sj_callgraph *graph = run->graph;
    const sj_replay_frame *frame = &graph->stack[top];
    const uint32_t symbol = sj_block_symbol(run->block, frame->place);
    sj_outline_add(&run->graph->outline,
                   &(sj_outline_call){.call_index = call_index_at(run, top),
                                      .start_ticks = frame->start,
                                      .duration_ticks = ended->duration_ticks,
                                      .self_ticks = ended->self_ticks,
                                      .function = run->block->functions[symbol - 1],
                                      .depth = run->base + (uint32_t)top - 1,
                                      .ending = ended->ending,
                                      .flags = ended->flags | untimed_flag(run, top)});
}

/* Adds the costs of the call at stack[top] to its node, if it has any. */
static sj_status count_costs(replay *run, uint32_t node, size_t top)
{
    sj_callgraph *graph = run->graph;
    return graph->costs.count == 0
               ? SJ_OK
               : sj_block_costs_count(&graph->costs, run->block, call_index_at(run, top),
                                      &graph->paths, node);
}

/* Adds the costs of the open calls to their nodes. An open call has costs in this block if it
 * jumped to another function. */
static sj_status count_open_costs(replay *run)
{
    uint32_t node = run->node;
    for (size_t top = run->top; top > 0; top--) {
        SJ_TRY(count_costs(run, node, top));
        node = run->graph->stack[top].caller;
    }
    return SJ_OK;
}

/* Ends the innermost call at any LEAVE. Slower than leave(). */
static sj_status leave_slow(replay *run, size_t event, uint32_t ending)
{
    sj_callgraph *graph = run->graph;
    const uint64_t ticks = run->block->ticks[event];
    const sj_replay_frame frame = graph->stack[run->top];
    const uint32_t index = run->base + (uint32_t)run->top - 1;
    const uint32_t flags =
        (frame.flags & ~(uint32_t)SJ_CALL_UNTIMED) | sj_call_trust_flags(&run->trust, index);
    const uint64_t duration = ticks - frame.start;
    const uint64_t self = duration - frame.child;
    SJ_TRY(sj_path_nodes_count_extra(&graph->paths, run->node, ending == SJ_ENDING_UNWOUND,
                                     flags != 0 || ending == SJ_ENDING_TRUNCATED));
    run->max_duration = duration > run->max_duration ? duration : run->max_duration;
    const sj_slow_call ended = {
        .duration_ticks = duration, .self_ticks = self, .ending = ending, .flags = flags};
    SJ_TRY(count_call(run, run->node, run->top, &ended));
    SJ_TRY(count_costs(run, run->node, run->top));
    if (run->top > run->key_top && duration > graph->outline.floor_ticks) {
        note_long(run, run->top, &ended);
    }
    if (run->top <= run->key_top) {
        SJ_TRY(note_late(run, &frame, event, self, ending, flags));
        run->behind_key = event + 1;
        run->key_top = run->top - 1;
    }
    sj_call_trust_leave(&run->trust, index);
    run->top--;
    run->flagged_top = run->top < run->flagged_top ? run->top : run->flagged_top;
    graph->stack[run->top].child += duration;
    run->node = frame.caller;
    set_watermark(run);
    return SJ_OK;
}

/* Pushes a call at any ENTER. Slower than push(). */
static sj_status enter_slow(replay *run, uint32_t function, size_t event)
{
    const uint32_t flags = sj_call_trust_enter(&run->trust);
    const uint32_t caller = run->node;
    run->node = sj_path_nodes_child(&run->graph->paths, parent_of(run->graph, caller), function);
    run->graph->stack[++run->top] = (sj_replay_frame){.start = run->block->ticks[event],
                                                      .flags = flags,
                                                      .place = (uint32_t)event,
                                                      .caller = caller};
    run->flagged_top = flags != 0 ? run->top : run->flagged_top;
    set_watermark(run);
    return run->node != SJ_NO_NODE ? SJ_OK : sj_path_nodes_failure(&run->graph->paths);
}

/* Replays any event on the slow path. */
static sj_status replay_any(replay *run, size_t event)
{
    const sj_block *block = run->block;
    const uint32_t symbol = sj_block_symbol(block, event);
    if (symbol != 0) {
        return enter_slow(run, block->functions[symbol - 1], event);
    }
    uint32_t ending = SJ_ENDING_RETURNED;
    if (run->ending < block->ending_count && block->endings[run->ending].event == event) {
        ending = block->endings[run->ending++].ending;
    }
    return leave_slow(run, event, ending);
}

/* Counts an ordinary call whose duration is outside the quiet range. `frame` has the start and the
 * ENTER of the call. */
static sj_status count_ordinary(replay *run, uint32_t number, const sj_replay_frame *frame,
                                uint64_t duration, uint64_t self, uint32_t ending)
{
    return count_call(
        run, number, (size_t)(frame - run->graph->stack),
        &(sj_slow_call){.duration_ticks = duration, .self_ticks = self, .ending = ending});
}

/* Adds an ordinary call to the outline. Returns the outline's new floor. */
static __attribute__((noinline, cold)) uint64_t note_ordinary(replay *run,
                                                              const sj_replay_frame *frame,
                                                              uint64_t duration, uint64_t self,
                                                              uint32_t ending)
{
    note_long(run, (size_t)(frame - run->graph->stack),
              &(sj_slow_call){.duration_ticks = duration, .self_ticks = self, .ending = ending});
    return run->graph->outline.floor_ticks;
}

/* The state of the loop over ordinary events. The compiler keeps it in registers. */
typedef struct walker {
    sj_replay_frame *top; /* the innermost open call */
    uint32_t node;
    uint64_t floor;                   /* the outline's floor_ticks */
    const sj_replay_frame *watermark; /* `watermark` of the replay, as a pointer */
    sj_path_line *nodes;
    const uint32_t *table;
    uint32_t mask; /* size of the table - 1 */
    /* The block's arrays. */
    const uint64_t *ticks;
    const sj_replay_symbol *dictionary;
    const uint16_t *symbols16;
    const uint32_t *symbols32;
} walker;

static inline __attribute__((always_inline)) walker walker_of(const replay *run)
{
    const sj_callgraph *graph = run->graph;
    return (walker){.top = graph->stack + run->top,
                    .node = run->node,
                    .floor = graph->outline.floor_ticks,
                    .watermark = graph->stack + run->watermark,
                    .nodes = graph->paths.nodes,
                    .table = graph->paths.table,
                    .mask = graph->paths.table_mask,
                    .ticks = run->block->ticks,
                    .dictionary = graph->symbols,
                    .symbols16 = run->block->symbols16,
                    .symbols32 = run->block->symbols32};
}

static inline __attribute__((always_inline)) void keep_walker(replay *run, const walker *at)
{
    run->top = (size_t)(at->top - run->graph->stack);
    run->node = at->node;
}

/* Returns the node for a call of `called` by the current node, or SJ_NO_NODE on failure. */
static inline __attribute__((always_inline)) uint32_t find_child(sj_path_nodes *paths, walker *at,
                                                                 bool flat, sj_replay_symbol called)
{
    const uint32_t parent = flat ? 0 : at->node;
    const uint32_t home = (sj_path_parent_hash(parent) + called.hash) & at->mask;
    const uint32_t known = at->table[home];
    if (__builtin_expect(sj_path_node_is(&at->nodes[known], parent, called.function), 1)) {
        return known;
    }
    const uint32_t child = sj_path_nodes_find_or_add(paths, parent, called.function);
    at->nodes = paths->nodes;
    at->table = paths->table;
    at->mask = paths->table_mask;
    return child;
}

static inline __attribute__((always_inline)) void push(walker *at, uint32_t child, size_t event)
{
    sj_replay_frame *frame = ++at->top;
    frame->start = at->ticks[event];
    frame->child = 0;
    frame->flags = 0;
    frame->place = (uint32_t)event;
    frame->caller = at->node;
    at->node = child;
}

static inline __attribute__((always_inline)) sj_status leave(replay *run, walker *at, size_t event,
                                                             uint32_t ending)
{
    const uint64_t duration = at->ticks[event] - at->top->start;
    const uint64_t self = duration - at->top->child;
    if (!sj_path_node_count_quiet(&at->nodes[at->node], duration, self)) {
        SJ_TRY(count_ordinary(run, at->node, at->top, duration, self, ending));
    }
    if (__builtin_expect(duration > at->floor, 0)) {
        at->floor = note_ordinary(run, at->top, duration, self, ending);
    }
    at->node = at->top->caller;
    at->top--;
    at->top->child += duration;
    return SJ_OK;
}

/* Counts a leaf call in node `child`. Its ENTER is at `event`, its LEAVE is the next event. */
static inline __attribute__((always_inline)) sj_status leaf(replay *run, walker *at, uint32_t child,
                                                            size_t event)
{
    const uint64_t start = at->ticks[event];
    const uint64_t duration = at->ticks[event + 1] - start;
    if (!sj_path_node_count_quiet(&at->nodes[child], duration, duration)) {
        at->top[1].start = start;
        at->top[1].place = (uint32_t)event;
        SJ_TRY(count_ordinary(run, child, at->top + 1, duration, duration, SJ_ENDING_RETURNED));
    }
    if (__builtin_expect(duration > at->floor, 0)) {
        at->top[1].start = start;
        at->top[1].place = (uint32_t)event;
        at->floor = note_ordinary(run, at->top + 1, duration, duration, SJ_ENDING_RETURNED);
    }
    at->top->child += duration;
    return SJ_OK;
}

/* Replays one LEAVE on the slow path and reloads the walker. */
static inline __attribute__((always_inline)) sj_status leave_any(replay *run, walker *at,
                                                                 size_t event)
{
    keep_walker(run, at);
    SJ_TRY(replay_any(run, event));
    *at = walker_of(run);
    return SJ_OK;
}

/* Replays the LEAVE at `event`, which has the block's next ending. Unwound calls above the
 * watermark stay on the fast path. */
static inline __attribute__((always_inline)) sj_status leave_ended(replay *run, walker *at,
                                                                   size_t event)
{
    if (at->top <= at->watermark || run->block->endings[run->ending].ending != SJ_ENDING_UNWOUND) {
        return leave_any(run, at, event);
    }
    run->ending++;
    SJ_TRY(sj_path_nodes_count_extra(&run->graph->paths, at->node, 1, 0));
    return leave(run, at, event, SJ_ENDING_UNWOUND);
}

static inline __attribute__((always_inline)) uint32_t symbol_at(const walker *at, bool wide,
                                                                size_t event)
{
    return wide ? at->symbols32[event] : at->symbols16[event];
}

static inline size_t next_ending(const replay *run, size_t end)
{
    const sj_block *block = run->block;
    const size_t event =
        run->ending < block->ending_count ? block->endings[run->ending].event : end;
    return event < end ? event : end;
}

/* Replays the events from `event` to `end` on the fast path. No gap may lie among them, their
 * ENTERs must not have flags, and their calls must not have costs. Compiled once for each
 * combination of the constants `wide` and `flat`. */
static inline __attribute__((always_inline)) sj_status
replay_events(replay *run, size_t event, size_t end, bool wide, bool flat)
{
    sj_path_nodes *paths = &run->graph->paths;
    walker at = walker_of(run);
    for (size_t stop = next_ending(run, end);; stop = next_ending(run, end)) {
        for (; event < stop; event++) {
            const uint32_t symbol = symbol_at(&at, wide, event);
            if (symbol != 0) {
                const uint32_t child = find_child(paths, &at, flat, at.dictionary[symbol]);
                if (__builtin_expect(child == SJ_NO_NODE, 0)) {
                    return sj_path_nodes_failure(paths);
                }
                if (event + 1 < stop && symbol_at(&at, wide, event + 1) == 0) {
                    SJ_TRY(leaf(run, &at, child, event));
                    event++;
                } else {
                    push(&at, child, event);
                }
            } else if (__builtin_expect(at.top > at.watermark, 1)) {
                SJ_TRY(leave(run, &at, event, SJ_ENDING_RETURNED));
            } else {
                SJ_TRY(leave_any(run, &at, event));
            }
        }
        if (event == end) {
            keep_walker(run, &at);
            return SJ_OK;
        }
        SJ_TRY(leave_ended(run, &at, event));
        event++;
    }
}

static sj_status replay_range(replay *run, size_t from, size_t to)
{
    for (; from < to && (run->enter_flags != 0 || run->graph->costs.count != 0); from++) {
        SJ_TRY(replay_any(run, from));
    }
    const bool wide = run->block->symbols16 == NULL;
    if (run->graph->flat) {
        return wide ? replay_events(run, from, to, true, true)
                    : replay_events(run, from, to, false, true);
    }
    return wide ? replay_events(run, from, to, true, false)
                : replay_events(run, from, to, false, false);
}

static sj_status record_sample(replay *run)
{
    sj_callgraph *graph = run->graph;
    const size_t every = (size_t)1 << SJ_SAMPLE_BITS;
    SJ_TRY(sj_array_reserve(&graph->samples, &graph->sample_capacity, 0, run->sample_count + 1,
                            sizeof(*graph->samples)));
    graph->samples[run->sample_count++] = run->node;
    run->sample_at += every - ((run->block->header.first_event + run->sample_at) & (every - 1));
    return SJ_OK;
}

static sj_status replay_all(replay *run)
{
    const sj_block *block = run->block;
    const size_t count = block->header.event_count;
    size_t event = 0;
    size_t gap = 0;
    while (event < count || gap < block->gap_count) {
        if (event == run->sample_at && event < count) {
            SJ_TRY(record_sample(run));
        }
        if (gap < block->gap_count && block->gaps[gap].before_event == event) {
            sj_call_trust_gap(&run->trust, block->gaps[gap].reason, run->base + (uint32_t)run->top);
            set_watermark(run);
            gap++;
            continue;
        }
        size_t stop = gap < block->gap_count ? block->gaps[gap].before_event : count;
        stop = stop < run->sample_at ? stop : run->sample_at;
        SJ_TRY(replay_range(run, event, stop));
        event = stop;
    }
    return SJ_OK;
}

static sj_status prepare_symbols(sj_callgraph *graph, const sj_block *block)
{
    SJ_TRY(sj_array_reserve(&graph->symbols, &graph->symbol_capacity, 0, block->function_count + 1,
                            sizeof(*graph->symbols)));
    for (size_t i = 0; i < block->function_count; i++) {
        graph->symbols[i + 1] = (sj_replay_symbol){
            .function = block->functions[i], .hash = sj_path_function_hash(block->functions[i])};
    }
    return SJ_OK;
}

/* Adds the open calls that were entered in this block to the outline and completes it. */
static void finish_outline(replay *run)
{
    sj_callgraph *graph = run->graph;
    sj_outline_call open[SJ_OUTLINE_OPEN];
    const size_t open_count = run->top - run->key_top;
    for (size_t i = 0; i < open_count && open_count <= SJ_OUTLINE_OPEN; i++) {
        const size_t top = run->key_top + 1 + i;
        const uint32_t symbol = sj_block_symbol(run->block, graph->stack[top].place);
        open[i] = (sj_outline_call){.call_index = call_index_at(run, top),
                                    .start_ticks = graph->stack[top].start,
                                    .function = run->block->functions[symbol - 1],
                                    .depth = run->base + (uint32_t)top - 1,
                                    .ending = SJ_NOT_ENDED};
    }
    const uint64_t longest = sj_outline_longest(&graph->outline);
    run->max_duration = longest > run->max_duration ? longest : run->max_duration;
    sj_outline_finish(&graph->outline, open, open_count);
}

/* Lists the calls that are open at the block's end, if the caller wants the list. Lists none if
 * `stack` lacks some of them, or if there are more than SJ_BLOCK_MAX_INLINE_FRAMES.
 * sj_callgraph_apply has reserved memory for the list. */
static void list_open(const replay *run, sj_block_summary *summary)
{
    sj_callgraph *graph = run->graph;
    if (!graph->lists_open || run->base != 0 || run->top > SJ_BLOCK_MAX_INLINE_FRAMES) {
        return;
    }
    for (size_t top = 1; top <= run->top; top++) {
        const sj_replay_frame *held = &graph->stack[top];
        sj_stack_frame frame = {0};
        if (top <= run->key_top) {
            frame = graph->key[held->place];
        } else {
            frame.function = run->block->functions[sj_block_symbol(run->block, held->place) - 1];
            frame.call_index = call_index_at(run, top);
            frame.start_ticks = held->start;
        }
        frame.child_ticks = held->child;
        frame.flags = held->flags | untimed_flag(run, top) |
                      sj_call_trust_flags(&run->trust, (uint32_t)top - 1);
        graph->open[top - 1] = frame;
    }
    summary->open = graph->open;
    summary->open_count = run->top;
}

sj_status sj_replay_block(sj_callgraph *graph, const sj_block *block, uint32_t looked_up,
                          sj_block_summary *summary)
{
    replay run = {.graph = graph, .block = block, .trust = sj_call_trust_of(&block->header)};
    graph->costs.count = 0;
    if (block->value_count != 0 && !graph->flat) {
        SJ_TRY(sj_block_costs_list(&graph->costs, block));
    }
    SJ_TRY(prepare_symbols(graph, block));
    SJ_TRY(open_frames(&run, looked_up));
    set_watermark(&run);
    graph->outline.call_count = 0;
    graph->outline.floor_ticks = 0;
    SJ_TRY(replay_all(&run));
    if (graph->costs.count != 0) {
        SJ_TRY(count_open_costs(&run));
    }
    finish_outline(&run);
    list_open(&run, summary);
    summary->outline = &graph->outline;
    summary->max_duration_ticks = run.max_duration;
    summary->late = graph->late;
    summary->late_count = run.late_count;
    summary->samples = graph->samples;
    summary->sample_count = run.sample_count;
    return SJ_OK;
}
