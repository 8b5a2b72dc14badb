/* Design notes.
 * Programs repeat themselves, and the decoder tells where (sj_block_repeat). Events that repeat
 * earlier ones, and begin on the same path, end calls of the same nodes, as long after their ENTERs
 * and each other as then: the words of these calls are copied, without a look at the events. Only
 * the times differ. What is left of the stack's work is to add up the times of callees in the frame
 * of their depth, to end calls that were open before, and to open those that stay so. */
#include "collector-server/callgraph/replay_steps.h"

/* The first of the words noted so far whose LEAVE is not before `event`. */
static uint64_t *word_from(const replay *run, size_t event)
{
    uint64_t *low = run->block->room;
    uint64_t *high = run->ended;
    while (low < high) {
        uint64_t *middle = low + (high - low) / 2;
        if (leave_of(*middle) < event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A stretch of a repeat: no longer than the distance to what it repeats, so that the two do not
 * overlap. */
typedef struct stretch {
    size_t first;
    size_t end;
    size_t distance;
    const uint64_t *source; /* words of the calls that ended in what it repeats */
    size_t word_count;
    uint64_t *words;         /* the same of its own */
    const uint64_t *unwound; /* one of these, or the end: those before it had no ending */
} stretch;

/* Whether the path before the source is the node that the stretch begins at. The next call to end
 * there is known: it was entered as much deeper as there are ENTERs before its LEAVE. */
static bool is_same_path(const walker *at, const stretch *part)
{
    if (part->word_count == 0) {
        return false;
    }
    uint32_t node = node_of(part->source[0]);
    for (size_t up = leave_of(part->source[0]) - (part->first - part->distance); up > 0; up--) {
        node = at->nodes[node].parent;
    }
    return node == at->node;
}

/* Counts the calls of the stretch that ended before event `end` and were unwound; how calls end
 * that were open before the stretch is told where they are ended. */
static void count_unwound(replay *run, const walker *at, stretch *part, size_t end)
{
    const sj_block *block = run->block;
    for (; run->ending < block->ending_count && block->endings[run->ending].event < end;
         run->ending++) {
        while (leave_of(*part->unwound) < block->endings[run->ending].event) {
            part->unwound++;
        }
        at->nodes[node_of(*part->unwound)].unwound++;
    }
}

/* The LEAVE of a call that was open before the stretch. */
static __attribute__((noinline)) sj_status leave_stretch(replay *run, walker *at, stretch *part,
                                                         size_t event)
{
    const sj_block *block = run->block;
    count_unwound(run, at, part, event);
    if (run->ending < block->ending_count && block->endings[run->ending].event == event) {
        return leave_ended(run, at, event, true);
    }
    return at->top > at->watermark ? leave(run, at, event, SJ_ENDING_RETURNED, true)
                                   : leave_odd(run, at, event);
}

/* A call within the stretch whose duration is not quiet. The endings before its own are counted
 * now: no later call has to look at them once more. */
static __attribute__((noinline)) sj_status count_odd_word(replay *run, const walker *at,
                                                          stretch *part, uint64_t word,
                                                          sj_replay_frame *frame, uint64_t self)
{
    const sj_block *block = run->block;
    const size_t enter = enter_and_1_of(word) - 1;
    const size_t leave = leave_of(word);
    count_unwound(run, at, part, leave);
    const bool is_odd =
        run->ending < block->ending_count && block->endings[run->ending].event == leave;
    frame->start = block->ticks[enter];
    frame->place = (uint32_t)enter;
    return sj_replay_count_odd(run, node_of(word), frame, block->ticks[leave] - frame->start, self,
                               is_odd ? block->endings[run->ending].ending
                                      : (uint32_t)SJ_ENDING_RETURNED);
}

/* Ends the calls of a stretch. */
static sj_status replay_words(replay *run, walker *at, stretch *part)
{
    const uint64_t moved = word_of(0, part->distance, part->distance);
    const uint64_t *const ticks = at->ticks;
    const uint64_t *const source = part->source;
    uint64_t *const words = part->words;
    const size_t count = part->word_count;
    const size_t first = part->first;
    sj_replay_frame *const stack = run->graph->stack;
    const size_t lowest = run->base - (size_t)1; /* the depth that stack[0] stands for */
    sj_path_node *nodes = at->nodes;
    uint64_t longest = at->longest;
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = source[i] + moved;
        if (__builtin_expect(enter_and_1_of(word) <= first, 0)) {
            at->ended = words + i;
            SJ_TRY(leave_stretch(run, at, part, leave_of(word)));
            nodes = at->nodes;
            continue;
        }
        words[i] = word;
        sj_path_node *node = &nodes[node_of(word)];
        const uint64_t duration = ticks[leave_of(word)] - ticks[enter_and_1_of(word) - 1];
        sj_replay_frame *frame = &stack[node->depth - lowest];
        const uint64_t self = duration - frame->child;
        frame->child = 0;
        frame[-1].child += duration;
        longest = duration > longest ? duration : longest;
        if (!sj_path_node_count_quiet(node, duration, self)) {
            SJ_TRY(count_odd_word(run, at, part, word, frame, self));
        }
    }
    at->longest = longest > at->longest ? longest : at->longest;
    at->ended = words + count;
    return SJ_OK;
}

/* Opens the calls that were entered in a stretch and not left. The innermost comes first to light:
 * what is not the ENTER of one is the LEAVE of a call within the stretch, whose word leads to its
 * ENTER and beyond the words of all calls below it. */
static sj_status open_rest(replay *run, walker *at, const stretch *part, size_t count)
{
    const uint64_t *word = part->words + part->word_count - 1;
    size_t event = part->end;
    for (size_t left = count; left > 0;) {
        event--;
        if (at->symbols16[event] != 0) {
            at->top[left--].place = (uint32_t)event;
        } else {
            const size_t enter = enter_and_1_of(*word) - 1;
            word -= (event - enter + 1) / 2;
            event = enter;
        }
    }
    for (; count > 0; count--) {
        const size_t enter = at->top[1].place;
        const uint32_t child =
            find_child(&run->graph->paths, at, false, at->dictionary[at->symbols16[enter]]);
        if (child == SJ_NO_NODE) {
            return sj_path_nodes_failure(&run->graph->paths);
        }
        const uint64_t callees = at->top[1].child;
        push(at, child, enter);
        at->top->child = callees;
    }
    return SJ_OK;
}

/* The first event from the next ending on that ends a call otherwise than by unwinding. */
static size_t cut_at_truncated(const replay *run, size_t end)
{
    const sj_block *block = run->block;
    for (size_t i = run->ending; i < block->ending_count && block->endings[i].event < end; i++) {
        if (block->endings[i].ending != SJ_ENDING_UNWOUND) {
            return block->endings[i].event;
        }
    }
    return end;
}

static stretch stretch_of(const replay *run, const sj_block_repeat *repeat, size_t first,
                          size_t end)
{
    const size_t apart = repeat->first - repeat->source;
    const size_t distance = (first - repeat->source) / apart * apart;
    end = cut_at_truncated(run, end - first < distance ? end : first + distance);
    const uint64_t *source = word_from(run, first - distance);
    return (stretch){.first = first,
                     .end = end,
                     .distance = distance,
                     .source = source,
                     .word_count = (size_t)(word_from(run, end - distance) - source),
                     .words = run->ended,
                     .unwound = run->ended};
}

/* Replays a stretch that begins at `event`. `*event` stays when its events are to be replayed one
 * by one. */
static sj_status replay_stretch(replay *run, const sj_block_repeat *repeat, size_t *event,
                                size_t end)
{
    stretch part = stretch_of(run, repeat, *event, end);
    walker at = walker_of(run);
    if (!is_same_path(&at, &part)) {
        return SJ_OK;
    }
    const size_t open = (size_t)(at.top - run->graph->stack);
    SJ_TRY(replay_words(run, &at, &part));
    count_unwound(run, &at, &part, part.end);
    const size_t ended = open - (size_t)(at.top - run->graph->stack);
    SJ_TRY(open_rest(run, &at, &part, part.end - part.first - 2 * part.word_count + ended));
    keep_walker(run, &at);
    *event = part.end;
    return SJ_OK;
}

/* The end of the events from `event` on that repeat others as a whole or not at all; the repeat
 * when they do. */
static size_t next_stretch(replay *run, size_t event, size_t end, const sj_block_repeat **repeat)
{
    const sj_block *block = run->block;
    *repeat = NULL;
    while (run->repeat < block->repeat_count &&
           event >= block->repeats[run->repeat].first + block->repeats[run->repeat].count) {
        run->repeat++;
    }
    if (run->repeat == block->repeat_count) {
        return end;
    }
    const sj_block_repeat *next = &block->repeats[run->repeat];
    size_t stop = next->first;
    if (event >= next->first) {
        *repeat = next;
        stop = next->first + (size_t)next->count;
    }
    return stop < end ? stop : end;
}

sj_status sj_replay_repeat(replay *run, size_t end, size_t *event, size_t *stop)
{
    const sj_block_repeat *repeat;
    const size_t first = *event;
    *stop = next_stretch(run, first, end, &repeat);
    if (repeat != NULL) {
        SJ_TRY(replay_stretch(run, repeat, event, *stop));
        *stop = *event > first ? *event : *stop;
    }
    return SJ_OK;
}

bool sj_replay_has_repeats(const replay *run, uint32_t max_depth)
{
    const sj_block *block = run->block;
    size_t repeated = 0;
    for (size_t i = 0; i < block->repeat_count; i++) {
        repeated += block->repeats[i].count;
    }
    return block->is_checked && repeated > block->header.event_count / 2 && !run->graph->flat &&
           max_depth < SJ_PATH_FOLD_DEPTH && run->graph->paths.most <= MOST_NODES;
}
