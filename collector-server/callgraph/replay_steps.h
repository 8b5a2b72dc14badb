/* Replaying a block: what one application of it knows, and the steps that ordinary events take. Not
 * for other files than replay.c, whose notes say more, and replay_repeats.c. */
#ifndef SJ_COLLECTOR_CALLGRAPH_REPLAY_STEPS_H
#define SJ_COLLECTOR_CALLGRAPH_REPLAY_STEPS_H

#include "collector-server/callgraph/replay.h"
#include "proto/call_trust.h"

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
    size_t ending; /* place of the next one in the block's */
    uint64_t max_duration;
    uint64_t *ended; /* where the next call that ends is noted; NULL: nowhere */
    size_t repeat;   /* place of the next one in the block's, or of the one that goes on */
} replay;

/* A call that ended, as a word: its node, its LEAVE and 1 + its ENTER, 0 for a call of the
 * key-frame. The n-th word of a block's room is that of its n-th LEAVE. */
enum { EVENT_BITS = 20, MOST_NODES = 1 << (64 - 2 * EVENT_BITS) };
_Static_assert(SJ_BLOCK_MAX_EVENTS < 1 << EVENT_BITS, "a word has room for events");

static inline uint64_t word_of(uint32_t node, size_t leave, size_t enter_and_1)
{
    return (uint64_t)node << (2 * EVENT_BITS) | (uint64_t)leave << EVENT_BITS | enter_and_1;
}

static inline uint32_t node_of(uint64_t word)
{
    return (uint32_t)(word >> (2 * EVENT_BITS));
}

static inline size_t leave_of(uint64_t word)
{
    return (word >> EVENT_BITS) & ((1U << EVENT_BITS) - 1);
}

static inline size_t enter_and_1_of(uint64_t word)
{
    return word & ((1U << EVENT_BITS) - 1);
}

/* sj_replay_odd replays an event of any kind. */
SJ_MUST_CHECK sj_status sj_replay_odd(replay *run, size_t event);

/* sj_replay_count_odd counts an ordinary call whose duration is not quiet; `frame` holds its start
 * and its place. */
SJ_MUST_CHECK sj_status sj_replay_count_odd(replay *run, uint32_t number,
                                            const sj_replay_frame *frame, uint64_t duration,
                                            uint64_t self, uint32_t ending);

/* sj_replay_has_repeats tells whether the words of a block are to be noted, for sj_replay_repeat:
 * when most of it repeats itself, and when the depth of a node is that of its calls, which it is
 * where no recursion is folded. Never more than `max_depth` calls are open. */
bool sj_replay_has_repeats(const replay *run, uint32_t max_depth);

/* sj_replay_repeat replays the events from `*event` on that repeat others, if they do, and moves it
 * behind them; never beyond `end`. Those from there to `*stop` are to be replayed one by one. */
SJ_MUST_CHECK sj_status sj_replay_repeat(replay *run, size_t end, size_t *event, size_t *stop);

/* Where ordinary events have led to; lives in registers. */
typedef struct walker {
    sj_replay_frame *top; /* the innermost open call */
    uint32_t node;
    uint64_t longest;
    const sj_replay_frame *watermark; /* at or below this, a LEAVE is not ordinary */
    sj_path_node *nodes;
    const sj_path_place *table;
    uint32_t mask; /* of the table */
    /* the block's */
    const uint64_t *ticks;
    const sj_replay_symbol *dictionary;
    const uint16_t *symbols16;
    const uint32_t *symbols32;
    uint64_t *ended; /* see replay */
} walker;

static inline __attribute__((always_inline)) walker walker_of(const replay *run)
{
    const sj_callgraph *graph = run->graph;
    return (walker){.top = graph->stack + run->top,
                    .node = run->node,
                    .longest = run->max_duration,
                    .watermark = graph->stack + run->watermark,
                    .nodes = graph->paths.nodes,
                    .table = graph->paths.table,
                    .mask = graph->paths.table_mask,
                    .ticks = run->block->ticks,
                    .dictionary = graph->symbols,
                    .symbols16 = run->block->symbols16,
                    .symbols32 = run->block->symbols32,
                    .ended = run->ended};
}

static inline __attribute__((always_inline)) void keep_walker(replay *run, const walker *at)
{
    run->top = (size_t)(at->top - run->graph->stack);
    run->node = at->node;
    run->max_duration = at->longest;
    run->ended = at->ended;
}

/* The node of a call, or SJ_NO_NODE. */
static inline __attribute__((always_inline)) uint32_t find_child(sj_path_nodes *paths, walker *at,
                                                                 bool flat, sj_replay_symbol called)
{
    const uint32_t parent = flat ? 0 : at->node;
    const uint32_t home = (sj_path_parent_hash(parent) + called.hash) & at->mask;
    if (__builtin_expect(at->table[home].key == sj_path_key(parent, called.function), 1)) {
        return at->table[home].node;
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
                                                             uint32_t ending, bool noted)
{
    const uint64_t duration = at->ticks[event] - at->top->start;
    const uint64_t self = duration - at->top->child;
    if (noted) {
        *at->ended++ = word_of(at->node, event, at->top->place + (size_t)1);
        at->top->child = 0;
    }
    if (!sj_path_node_count_quiet(&at->nodes[at->node], duration, self)) {
        SJ_TRY(sj_replay_count_odd(run, at->node, at->top, duration, self, ending));
    }
    at->longest = duration > at->longest ? duration : at->longest;
    at->node = at->top->caller;
    at->top--;
    at->top->child += duration;
    return SJ_OK;
}

/* A call that calls nothing. */
static inline __attribute__((always_inline)) sj_status leaf(replay *run, walker *at, uint32_t child,
                                                            size_t event, bool noted)
{
    if (noted) {
        *at->ended++ = word_of(child, event + 1, event + 1);
    }
    const uint64_t start = at->ticks[event];
    const uint64_t duration = at->ticks[event + 1] - start;
    if (!sj_path_node_count_quiet(&at->nodes[child], duration, duration)) {
        at->top[1].start = start;
        at->top[1].place = (uint32_t)event;
        SJ_TRY(
            sj_replay_count_odd(run, child, at->top + 1, duration, duration, SJ_ENDING_RETURNED));
    }
    at->longest = duration > at->longest ? duration : at->longest;
    at->top->child += duration;
    return SJ_OK;
}

/* A LEAVE that is not above the watermark, or has an ending. */
static inline __attribute__((always_inline)) sj_status leave_odd(replay *run, walker *at,
                                                                 size_t event)
{
    keep_walker(run, at);
    SJ_TRY(sj_replay_odd(run, event));
    *at = walker_of(run);
    return SJ_OK;
}

/* The LEAVE at `event`, which has the block's next ending. */
static inline __attribute__((always_inline)) sj_status leave_ended(replay *run, walker *at,
                                                                   size_t event, bool noted)
{
    if (at->top <= at->watermark || run->block->endings[run->ending].ending != SJ_ENDING_UNWOUND) {
        return leave_odd(run, at, event);
    }
    run->ending++;
    at->nodes[at->node].unwound++;
    return leave(run, at, event, SJ_ENDING_UNWOUND, noted);
}

static inline __attribute__((always_inline)) uint32_t symbol_at(const walker *at, bool wide,
                                                                size_t event)
{
    return wide ? at->symbols32[event] : at->symbols16[event];
}

#endif
