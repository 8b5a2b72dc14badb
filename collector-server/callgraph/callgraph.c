/* Design notes.
 * Replaying a block walks its events over a small stack of (start, callee time) and one current
 * node. A frame holds the node of its caller, because leaving a folded recursion (path_nodes.c)
 * does not lead to the parent of its node. The node of a call
 * is guessed to be the one that was entered after the same step the last time (one load, one
 * compare; "the child taken last" was wrong for 45 % of lua's calls); the hash table of (parent,
 * function) is asked only when that fails. Whatever is rare (calls of the key-frame, calls
 * flagged by gaps, endings other than a return) lies at or below a watermark of the stack or at an
 * event number known beforehand, so that the loop over ordinary events tests for it once per LEAVE.
 * A block is validated before anything is changed.
 * A graph that only measures blocks hangs all nodes on the root: one for each function. */
#include "collector-server/callgraph/callgraph.h"

#include "collector-server/callgraph/block_check.h"
#include "collector-server/callgraph/path_nodes.h"
#include "proto/call_trust.h"

#include <stdlib.h>
#include <string.h>

enum { PREFIX_SLOTS = 16, MOST_GAUGE_NODES = 65536 };

typedef struct replay_frame {
    uint64_t start;
    uint64_t child;
    uint32_t flags;  /* those given at entry */
    uint32_t place;  /* index in `key` for calls of the key-frame, else the event that entered it */
    uint32_t caller; /* node */
} replay_frame;

/* The node of a stored stack prefix, so that a deep stack is not walked again for each block. */
typedef struct prefix_slot {
    uint32_t stream;
    uint32_t reference; /* 0: empty */
    uint32_t count;
    uint32_t node;
} prefix_slot;

struct sj_callgraph {
    sj_path_nodes paths;
    replay_frame *stack; /* [0] is a sentinel that stands for everything below */
    size_t stack_capacity;
    sj_late_leave *late;
    size_t late_capacity;
    sj_frame *key; /* looked-up and inline frames of the block being applied */
    size_t key_capacity;
    prefix_slot prefixes[PREFIX_SLOTS];
    uint32_t next_prefix;
    sj_slow_calls slow;
    uint32_t *samples;
    size_t sample_capacity;
    uint32_t parent_mask; /* of nodes under which calls are looked for; 0: all under the root */
};

/* One application of a block. */
typedef struct replay {
    sj_callgraph *graph;
    const sj_block *block;
    sj_call_trust trust;
    uint32_t base;    /* calls open below stack[1] */
    size_t top;       /* index of the innermost open call in stack; 0: none held */
    size_t watermark; /* at or below this, a LEAVE is not ordinary */
    size_t key_top;   /* at or below this are calls of the key-frame */
    size_t odd_top;   /* at or below this are all calls that were entered with flags */
    uint32_t node;
    uint32_t enter_flags;
    size_t sample_at; /* event of the next sample */
    size_t sample_count;
    size_t late_count;
    uint64_t max_duration;
    uint64_t ended;
} replay;

sj_status sj_callgraph_new(sj_callgraph **graph)
{
    sj_callgraph *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->parent_mask = UINT32_MAX;
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
    free(graph->late);
    free(graph->key);
    free(graph->samples);
    sj_slow_calls_deinit(&graph->slow);
    free(graph);
}

/* Grows an array to hold `needed` elements; the old one stays valid on failure. */
static sj_status reserve_array(void **array, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity) {
        return SJ_OK;
    }
    size_t grown = *capacity > 0 ? *capacity : 64;
    while (grown < needed) {
        grown *= 2;
    }
    void *moved = realloc(*array, grown * size);
    if (moved == NULL) {
        return SJ_ENOMEM;
    }
    *array = moved;
    *capacity = grown;
    return SJ_OK;
}

static const prefix_slot *find_prefix(const sj_callgraph *graph, const sj_block_header *header)
{
    for (uint32_t i = 0; i < PREFIX_SLOTS; i++) {
        const prefix_slot *slot = &graph->prefixes[i];
        if (slot->reference != 0 && slot->reference == header->stack_reference &&
            slot->stream == header->stream && slot->count == header->stack_frames) {
            return slot;
        }
    }
    return NULL;
}

static void keep_prefix(sj_callgraph *graph, const sj_block_header *header, uint32_t node)
{
    graph->prefixes[graph->next_prefix++ % PREFIX_SLOTS] =
        (prefix_slot){.stream = header->stream,
                      .reference = header->stack_reference,
                      .count = header->stack_frames,
                      .node = node};
}

/* Puts the frames that the block needs into graph->key, outermost first, and says how many of the
 * stored prefix are among them. Changes nothing else. */
static sj_status gather_frames(sj_callgraph *graph, const sj_block *block,
                               const sj_block_extent *extent, sj_stack_lookup lookup,
                               void *lookup_context, uint32_t *looked_up)
{
    const uint32_t prefix = block->header.stack_frames;
    *looked_up = 0;
    if (prefix > 0 && (extent->min_depth < prefix || find_prefix(graph, &block->header) == NULL)) {
        *looked_up = prefix;
    }
    SJ_TRY(reserve_array((void **)&graph->key, &graph->key_capacity,
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

/* Opens the calls of the key-frame. */
static sj_status open_frames(replay *run, uint32_t looked_up)
{
    sj_callgraph *graph = run->graph;
    const sj_block_header *header = &run->block->header;
    const uint32_t held = looked_up + (uint32_t)run->block->frame_count;
    run->base = header->open_depth - held;
    run->node = run->base > 0 ? find_prefix(graph, header)->node : 0;
    for (uint32_t i = 0; i < held; i++) {
        if (looked_up > 0 && i == looked_up) {
            keep_prefix(graph, header, run->node);
        }
        const sj_frame *frame = &graph->key[i];
        const uint32_t caller = run->node;
        run->node =
            sj_path_nodes_child(&graph->paths, caller & graph->parent_mask, frame->function);
        if (run->node == SJ_NO_NODE) {
            return sj_path_nodes_failure(&graph->paths);
        }
        run->top++;
        graph->stack[run->top] = (replay_frame){.start = frame->start_ticks,
                                                .child = frame->child_ticks,
                                                .flags = frame->flags,
                                                .place = i,
                                                .caller = caller};
    }
    run->key_top = run->top;
    return SJ_OK;
}

/* The highest stack index that a LEAVE cannot treat as ordinary. */
static void set_watermark(replay *run)
{
    uint32_t depth = sj_call_trust_flagged(&run->trust);
    depth = depth > run->trust.uncertain_depth ? depth : run->trust.uncertain_depth;
    run->watermark = depth > run->base ? depth - run->base : 0;
    run->watermark = run->watermark > run->key_top ? run->watermark : run->key_top;
    run->watermark = run->watermark > run->odd_top ? run->watermark : run->odd_top;
    run->enter_flags = run->trust.uncertain_depth > 0 ? (uint32_t)SJ_CALL_UNCERTAIN_DEPTH : 0u;
}

/* Index of the call at stack[top]. Before an event there were as many ENTERs as make up the growth
 * of the depth and the number of events together. */
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

/* A call that may be one of the longest of its function. */
static sj_status note_slow(replay *run, uint32_t number, size_t top, const sj_slow_call *ended)
{
    sj_path_node *node = &run->graph->paths.nodes[number];
    sj_slow_calls *slow = &run->graph->slow;
    if (ended->duration_ticks > sj_slow_calls_threshold(slow, node->function)) {
        sj_slow_call call = *ended;
        call.call_index = call_index_at(run, top);
        call.start_ticks = run->graph->stack[top].start;
        call.stream = run->block->header.stream;
        call.node = number;
        SJ_TRY(sj_slow_calls_add(slow, node->function, &call));
    }
    node->slow_ticks = sj_slow_calls_threshold(slow, node->function);
    return SJ_OK;
}

/* Counts a call of any kind, which was at stack[top]. */
static __attribute__((noinline)) sj_status count_call(replay *run, uint32_t number, size_t top,
                                                      const sj_slow_call *ended)
{
    sj_path_nodes *paths = &run->graph->paths;
    SJ_TRY(sj_path_nodes_count(paths, number, ended->duration_ticks, ended->self_ticks));
    if (ended->duration_ticks > paths->nodes[number].slow_ticks) {
        SJ_TRY(note_slow(run, number, top, ended));
    }
    sj_path_nodes_quieten(paths, number);
    return SJ_OK;
}

static sj_status note_late(replay *run, const replay_frame *frame, uint64_t ticks, uint64_t self,
                           uint32_t ending, uint32_t flags)
{
    sj_callgraph *graph = run->graph;
    SJ_TRY(reserve_array((void **)&graph->late, &graph->late_capacity, run->late_count + 1,
                         sizeof(*graph->late)));
    graph->late[run->late_count++] =
        (sj_late_leave){.call_index = graph->key[frame->place].call_index,
                        .end_ticks = ticks,
                        .self_ticks = self,
                        .ending = ending,
                        .flags = flags};
    return SJ_OK;
}

/* A LEAVE with anything unusual about it. */
static sj_status leave_slow(replay *run, uint64_t ticks, uint32_t ending)
{
    sj_callgraph *graph = run->graph;
    const replay_frame frame = graph->stack[run->top];
    const uint32_t index = run->base + (uint32_t)run->top - 1;
    sj_path_node *node = &graph->paths.nodes[run->node];
    const uint32_t flags = frame.flags | sj_call_trust_flags(&run->trust, index);
    const uint64_t duration = ticks - frame.start;
    const uint64_t self = duration - frame.child;
    node->unwound += ending == SJ_ENDING_UNWOUND;
    node->untrusted += flags != 0 || ending == SJ_ENDING_TRUNCATED;
    run->max_duration = duration > run->max_duration ? duration : run->max_duration;
    SJ_TRY(count_call(
        run, run->node, run->top,
        &(sj_slow_call){
            .duration_ticks = duration, .self_ticks = self, .ending = ending, .flags = flags}));
    if (run->top <= run->key_top) {
        SJ_TRY(note_late(run, &frame, ticks, self, ending, flags));
        run->key_top = run->top - 1;
    }
    sj_call_trust_leave(&run->trust, index, node->function, ending);
    run->top--;
    run->odd_top = run->top < run->odd_top ? run->top : run->odd_top;
    graph->stack[run->top].child += duration;
    run->node = frame.caller;
    set_watermark(run);
    return SJ_OK;
}

/* An ENTER while what lies below is uncertain, or right after a truncated call. */
static sj_status enter_slow(replay *run, uint32_t function, size_t event)
{
    const uint32_t flags = sj_call_trust_enter(&run->trust, function);
    const uint32_t caller = run->node;
    run->node = sj_path_nodes_child(&run->graph->paths, caller & run->graph->parent_mask, function);
    run->graph->stack[++run->top] = (replay_frame){.start = run->block->ticks[event],
                                                   .flags = flags,
                                                   .place = (uint32_t)event,
                                                   .caller = caller};
    run->odd_top = flags != 0 ? run->top : run->odd_top;
    set_watermark(run);
    return run->node != SJ_NO_NODE ? SJ_OK : sj_path_nodes_failure(&run->graph->paths);
}

/* An event of any kind; `symbol` 0: a LEAVE. */
static sj_status replay_odd(replay *run, uint32_t symbol, size_t event)
{
    if (symbol == 0) {
        return leave_slow(run, run->block->ticks[event], SJ_ENDING_RETURNED);
    }
    return enter_slow(run, run->block->functions[symbol - 1], event);
}

/* An ordinary call whose duration is not quiet. */
static sj_status count_odd(replay *run, uint32_t number, const replay_frame *frame,
                           uint64_t duration, uint64_t self)
{
    return count_call(run, number, (size_t)(frame - run->graph->stack),
                      &(sj_slow_call){.duration_ticks = duration, .self_ticks = self});
}

/* Replays the events from `event` to `end`, which have no endings and no gaps among them, while no
 * ENTER is odd. The top of the stack and the node live in registers; only odd events need them in
 * `run`. Most calls call nothing: their LEAVE is the next event, and they need no frame. */
static inline __attribute__((always_inline)) sj_status replay_events(replay *run, size_t event,
                                                                     size_t end,
                                                                     const uint16_t *symbols16,
                                                                     const uint32_t *symbols32)
{
    sj_path_nodes *paths = &run->graph->paths;
    replay_frame *stack = run->graph->stack;
    const uint64_t *ticks = run->block->ticks;
    const uint32_t *functions = run->block->functions;
    const uint32_t parent_mask = run->graph->parent_mask;
    replay_frame *top = stack + run->top;
    const replay_frame *watermark = stack + run->watermark;
    uint32_t node = run->node;
    uint64_t longest = run->max_duration;
    for (; event < end; event++) {
        const uint32_t symbol = symbols16 != NULL ? symbols16[event] : symbols32[event];
        if (symbol != 0) {
            const uint32_t child =
                sj_path_nodes_child(paths, node & parent_mask, functions[symbol - 1]);
            if (__builtin_expect(child == SJ_NO_NODE, 0)) {
                return sj_path_nodes_failure(paths);
            }
            top[1].start = ticks[event];
            top[1].child = 0;
            top[1].flags = 0;
            top[1].place = (uint32_t)event;
            top[1].caller = node;
            const size_t next = event + 1;
            if (next < end && (symbols16 != NULL ? symbols16[next] : symbols32[next]) == 0) {
                const uint64_t duration = ticks[next] - ticks[event];
                if (!sj_path_node_count_quiet(&paths->nodes[child], duration, duration)) {
                    SJ_TRY(count_odd(run, child, top + 1, duration, duration));
                }
                top->child += duration;
                longest = duration > longest ? duration : longest;
                event = next;
            } else {
                top++;
                node = child;
            }
        } else if (__builtin_expect(top <= watermark, 0)) {
            run->top = (size_t)(top - stack);
            run->node = node;
            SJ_TRY(leave_slow(run, ticks[event], SJ_ENDING_RETURNED));
            top = stack + run->top;
            watermark = stack + run->watermark;
            node = run->node;
        } else {
            const uint64_t duration = ticks[event] - top->start;
            const uint64_t self = duration - top->child;
            if (!sj_path_node_count_quiet(&paths->nodes[node], duration, self)) {
                SJ_TRY(count_odd(run, node, top, duration, self));
            }
            longest = duration > longest ? duration : longest;
            node = top->caller;
            top--;
            top->child += duration;
        }
    }
    run->top = (size_t)(top - stack);
    run->node = node;
    run->max_duration = longest > run->max_duration ? longest : run->max_duration;
    return SJ_OK;
}

static sj_status replay_range(replay *run, size_t from, size_t to)
{
    for (; from < to && run->enter_flags != 0; from++) {
        SJ_TRY(replay_odd(run, sj_block_symbol(run->block, from), from));
    }
    if (run->block->symbols16 != NULL) {
        return replay_events(run, from, to, run->block->symbols16, NULL);
    }
    return replay_events(run, from, to, NULL, run->block->symbols32);
}

static sj_status take_sample(replay *run)
{
    sj_callgraph *graph = run->graph;
    const size_t every = (size_t)1 << SJ_SAMPLE_BITS;
    SJ_TRY(reserve_array((void **)&graph->samples, &graph->sample_capacity, run->sample_count + 1,
                         sizeof(*graph->samples)));
    graph->samples[run->sample_count++] = run->node;
    run->sample_at += every - ((run->block->header.first_event + run->sample_at) & (every - 1));
    return SJ_OK;
}

static sj_status replay_block(replay *run)
{
    const sj_block *block = run->block;
    const size_t count = block->header.event_count;
    size_t event = 0;
    size_t gap = 0;
    size_t ending = 0;
    while (event < count || gap < block->gap_count) {
        if (event == run->sample_at && event < count) {
            SJ_TRY(take_sample(run));
        }
        if (gap < block->gap_count && block->gaps[gap].before_event == event) {
            sj_call_trust_gap(&run->trust, block->gaps[gap].reason, run->base + (uint32_t)run->top);
            set_watermark(run);
            gap++;
            continue;
        }
        if (ending < block->ending_count && block->endings[ending].event == event) {
            SJ_TRY(leave_slow(run, block->ticks[event], block->endings[ending].ending));
            ending++;
            event++;
            continue;
        }
        size_t stop = gap < block->gap_count ? block->gaps[gap].before_event : count;
        if (ending < block->ending_count && block->endings[ending].event < stop) {
            stop = block->endings[ending].event;
        }
        stop = stop < run->sample_at ? stop : run->sample_at;
        SJ_TRY(replay_range(run, event, stop));
        event = stop;
    }
    return SJ_OK;
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
    SJ_TRY(
        reserve_array((void **)&graph->stack, &graph->stack_capacity, most, sizeof(*graph->stack)));
    graph->stack[0] = (replay_frame){0};
    replay run = {.graph = graph, .block = block, .trust = sj_call_trust_of(&block->header)};
    SJ_TRY(open_frames(&run, looked_up));
    set_watermark(&run);
    SJ_TRY(replay_block(&run));
    summary->ended_calls = block->header.event_count - extent.entered;
    summary->max_duration_ticks = run.max_duration;
    summary->max_depth = extent.max_entered_depth;
    summary->late = graph->late;
    summary->late_count = run.late_count;
    summary->samples = graph->samples;
    summary->sample_count = run.sample_count;
    return SJ_OK;
}

sj_status sj_callgraph_measure(sj_callgraph *gauge, const sj_block *block, sj_stack_lookup lookup,
                               void *lookup_context, sj_block_summary *summary)
{
    if (gauge->parent_mask != 0 || gauge->paths.count > MOST_GAUGE_NODES) {
        sj_path_nodes_deinit(&gauge->paths);
        SJ_TRY(sj_path_nodes_init(&gauge->paths));
        gauge->parent_mask = 0;
        gauge->slow.floor_ticks = UINT64_MAX; /* no call is slow */
    }
    memset(gauge->prefixes, 0, sizeof(gauge->prefixes)); /* of other sessions */
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

static sj_status merge_node(sj_path_nodes *paths, uint32_t number, const sj_path_node *sums)
{
    sj_path_node *node = &paths->nodes[number];
    node->calls += sums->calls;
    node->total_ticks += sums->total_ticks;
    node->self_ticks += sums->self_ticks;
    node->unwound += sums->unwound;
    node->untrusted += sums->untrusted;
    if (sums->calls > 0) {
        node->min_ticks = sums->min_ticks < node->min_ticks ? sums->min_ticks : node->min_ticks;
        node->max_ticks = sums->max_ticks > node->max_ticks ? sums->max_ticks : node->max_ticks;
    }
    sj_path_nodes_touch(paths, number);
    node->quiet_count = 0;
    return sj_histogram_merge(&node->histogram, &sums->histogram);
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
        status = place != SJ_NO_NODE ? merge_node(&graph->paths, place, &nodes[i])
                                     : sj_path_nodes_failure(&graph->paths);
        places[i + 1] = place;
    }
    free(places);
    return status;
}

uint32_t sj_callgraph_node_count(const sj_callgraph *graph)
{
    return graph->paths.count;
}

const sj_path_node *sj_callgraph_node(const sj_callgraph *graph, uint32_t node)
{
    return node < graph->paths.count ? &graph->paths.nodes[node] : NULL;
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

sj_slow_calls *sj_callgraph_slow_calls(sj_callgraph *graph)
{
    return &graph->slow;
}
