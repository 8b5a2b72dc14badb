/* The call graph of one session: who called whom, rebuilt from blocks by containment.
 *
 * A calls B when both are on one stream and A's interval contains B's, and no call between them
 * does. Blocks carry the true order, so containment is read off the order of events
 * (callgraph_apply).
 *
 * Blocks may come in any order and with others missing: every aggregate is a sum over calls that
 * *ended* in the block, whose start and callee time the key-frame knows.
 *
 * Nodes are call paths (function under its callers); node 0 is the root of all threads. From
 * SJ_PATH_FOLD_DEPTH levels on, a recursion is folded: a call goes to the nearest node above it
 * with the same function and caller, so a million levels of recursion are some thousand nodes;
 * calls, self times and edges stay exact (rows of `calls` are never folded). Paths beyond a budget
 * are folded, too, the rarest first (sj_callgraph_fold_rare). Not thread-safe: the store's writer
 * owns it. Memory: some 100 bytes a node plus its histogram (path_histogram.h). */
#ifndef SJ_PROTO_CALLGRAPH_CALLGRAPH_H
#define SJ_PROTO_CALLGRAPH_CALLGRAPH_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"
#include "proto/callgraph/path_histogram.h"
#include "proto/callgraph/slow_calls.h"

enum {
    SJ_PATH_FOLD_DEPTH = 1024,
    SJ_SAMPLE_BITS = SJ_BLOCK_STEP_BITS /* the open path is noted where a step begins */
};

typedef struct sj_callgraph sj_callgraph;

/* Call paths that a session may have, some 165 bytes each. Programs have thousands, compilers
 * millions: those beyond the budget are folded between two blocks. The limit ends what folding
 * cannot make fit: a session that is made to have as many callers and callees. */
enum { SJ_PATH_BUDGET = 1 << 19, SJ_MOST_PATHS = 1 << 21 };

/* Sums of what the measured calls of a path have cost, by sj_value_cost. */
typedef struct sj_path_cost {
    uint64_t calls;    /* that were measured */
    uint32_t function; /* session-wide id */
    uint32_t known;    /* bits of those that any of them has */
    uint64_t all[SJ_COSTS];
    uint64_t outermost[SJ_COSTS]; /* of calls that lie in no measured call of their function */
} sj_path_cost;

/* What is known of a call path. */
typedef struct sj_path_node {
    uint64_t calls; /* that ended */
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t min_ticks; /* UINT64_MAX while calls == 0 */
    uint64_t max_ticks;
    uint64_t unwound;
    uint64_t untrusted;          /* calls with any sj_call_flag, or truncated */
    uint32_t parent;             /* node; 0: root */
    uint32_t function;           /* session-wide function id */
    uint32_t depth;              /* 0 for children of the root */
    bool recursive;              /* its function occurs above it */
    bool rare;                   /* a root that stands for its function as a caller in rare paths */
    bool dirty;                  /* changed since sj_callgraph_clean */
    sj_path_histogram histogram; /* of durations in ticks */
} sj_path_node;

/* A call that was entered in an earlier block and ended in this one. */
typedef struct sj_deferred_exit {
    uint64_t call_index;
    uint64_t end_ticks;
    uint64_t self_ticks;
    uint64_t left_ticks; /* when it jumped to another (a tail call); 0: it did not */
    uint32_t ending;     /* sj_ending */
    uint32_t flags;      /* sj_call_flag */
} sj_deferred_exit;

/* What one block says beyond the nodes. Arrays belong to the graph until its next call. */
typedef struct sj_block_summary {
    uint64_t ended_calls;
    uint64_t max_duration_ticks;
    uint32_t max_depth; /* of calls entered in the block, counted from 1 */
    const sj_deferred_exit *late;
    size_t late_count;
    /* the innermost open path at the block's first event, and at each event whose number in the
     * stream is a multiple of 2^SJ_SAMPLE_BITS; nodes, 0: none open */
    const uint32_t *samples;
    size_t sample_count;
    sj_outline *outline; /* may be shortened */
    /* the calls open at the block's end, outermost first, if sj_callgraph_list_open asked for them;
     * NULL: not asked for, or more than SJ_BLOCK_MAX_INLINE_FRAMES */
    const sj_stack_frame *open;
    size_t open_count;
} sj_block_summary;

/* Frames below the key-frame's inline ones; the store finds them among the STACK blocks.
 * Gives `count` frames, outermost first, into `frames`; SJ_ENOTFOUND when one is missing. */
typedef sj_status (*sj_stack_lookup)(void *context, uint32_t stream, uint32_t stack_reference,
                                     uint32_t count, sj_stack_frame *frames);

SJ_MUST_CHECK sj_status sj_callgraph_new(sj_callgraph **graph);
void sj_callgraph_free(sj_callgraph *graph);

/* sj_callgraph_limit sets how many call paths there may be, the root included, in the place of
 * SJ_MOST_PATHS. */
void sj_callgraph_limit(sj_callgraph *graph, uint32_t most);

/* sj_callgraph_list_open makes the summaries of later blocks list the calls that they leave open.
 */
void sj_callgraph_list_open(sj_callgraph *graph);

/* sj_callgraph_apply adds one decoded CALLS block (each block once: the caller has deduplicated).
 * SJ_ECORRUPT, and what `lookup` returns when it fails (it may be NULL: SJ_ENOTFOUND where it were
 * needed), leave the graph as it was. SJ_ENOMEM, and SJ_ELIMIT when the session has more
 * call paths than it may have: the graph must be dropped and reloaded. */
SJ_MUST_CHECK sj_status sj_callgraph_apply(sj_callgraph *graph, const sj_block *block,
                                           sj_stack_lookup lookup, void *lookup_context,
                                           sj_block_summary *summary);

/* sj_callgraph_measure checks a block and summarises it as sj_callgraph_apply does, without any
 * call graph of its session: `gauge` is one that serves nothing else and stays small. Only the
 * nodes of `samples` are not given (they are 0). */
SJ_MUST_CHECK sj_status sj_callgraph_measure(sj_callgraph *gauge, const sj_block *block,
                                             sj_stack_lookup lookup, void *lookup_context,
                                             sj_block_summary *summary);

/* sj_callgraph_restore puts back a copy of a stored node (histogram included; `dirty` is cleared);
 * parents before children; its number must be the next one (sj_callgraph_node_count). */
SJ_MUST_CHECK sj_status sj_callgraph_restore(sj_callgraph *graph, const sj_path_node *node);

/* sj_callgraph_merge adds sums made elsewhere: nodes[i] has its parent at nodes[parent - 1], before
 * it, or the root (0). SJ_ECORRUPT leaves the graph as it was; SJ_ENOMEM, SJ_ELIMIT: drop it and
 * reload. */
SJ_MUST_CHECK sj_status sj_callgraph_merge(sj_callgraph *graph, const sj_path_node *nodes,
                                           uint32_t count);

/* What sj_callgraph_fold_rare did. */
typedef struct sj_path_folding {
    uint32_t *moved; /* [moved_count]: the new number of each node */
    uint32_t moved_count;
    uint64_t paths; /* that are no more */
    uint64_t calls; /* that ended on them */
} sj_path_folding;

/* sj_callgraph_fold_rare keeps about `keep` call paths and folds the rarest: those that have, with
 * all below them, the least share of calls and of self time. What is folded keeps its caller and
 * loses the path above: its sums go to a child of the root node (`rare`) of its caller, so that the
 * sums of functions and of edges stay exact. A recursive one goes below the rare node of its own
 * function and there below its caller, so that it is recursive still; one in another call of its
 * edge goes below that edge and its caller (rare A, B, A, B). A path that is called again is
 * counted anew. Nodes get new numbers and are all dirty. Memory afterwards: at most `keep`
 * nodes, those that threads begin with, and four for each edge. Not between a block and the use of
 * its summary. SJ_ENOMEM leaves the graph as it was. sj_path_folding_deinit frees `folding`. */
SJ_MUST_CHECK sj_status sj_callgraph_fold_rare(sj_callgraph *graph, uint32_t keep,
                                               sj_path_folding *folding);
void sj_path_folding_deinit(sj_path_folding *folding); /* safe on a zeroed one */

uint32_t sj_callgraph_node_count(const sj_callgraph *graph); /* root included */

/* sj_callgraph_node says what is known of a node, whose histogram it borrows until the graph
 * changes; zeroes of one that is not there. */
sj_path_node sj_callgraph_node(const sj_callgraph *graph, uint32_t node);

/* sj_callgraph_is_nested_edge returns whether a call of the node lies in another call of its
 * function by the same caller, whose time has its time; false of a node that is not there. */
bool sj_callgraph_is_nested_edge(const sj_callgraph *graph, uint32_t node);

/* sj_callgraph_cost borrows the sums of a node's measured calls until the graph changes; NULL: none
 * was measured. sj_callgraph_cost_at: those of one of the sj_callgraph_cost_count nodes that have
 * any. sj_callgraph_restore_cost gives them to a node that was restored: SJ_ENOMEM. */
size_t sj_callgraph_cost_count(const sj_callgraph *graph);
const sj_path_cost *sj_callgraph_cost_at(const sj_callgraph *graph, size_t place);
const sj_path_cost *sj_callgraph_cost(const sj_callgraph *graph, uint32_t node);
SJ_MUST_CHECK sj_status sj_callgraph_restore_cost(sj_callgraph *graph, uint32_t node,
                                                  const sj_path_cost *cost);

/* sj_callgraph_settle makes the totals of folded recursions right, before nodes are stored or sent:
 * no time counts twice, so a path's total is no less than those of its callees together.
 * SJ_ENOMEM leaves all as it was. */
SJ_MUST_CHECK sj_status sj_callgraph_settle(sj_callgraph *graph);

/* sj_callgraph_dirty lists the nodes changed since the last sj_callgraph_clean. */
const uint32_t *sj_callgraph_dirty(const sj_callgraph *graph, size_t *count);
void sj_callgraph_clean(sj_callgraph *graph);

/* sj_callgraph_fold_histograms brings the histograms of the functions of dirty nodes up to date. It
 * may be called again. SJ_ENOMEM: call it again before asking for any. */
SJ_MUST_CHECK sj_status sj_callgraph_fold_histograms(sj_callgraph *graph);

/* sj_callgraph_function_histogram borrows the sum over the paths of a function, right after
 * folding; NULL: none of its calls has ended. */
const sj_histogram *sj_callgraph_function_histogram(const sj_callgraph *graph, uint32_t function);

/* sj_callgraph_slow_calls borrows the longest calls of the functions. The owner may set
 * `floor_ticks` before the first block, put back what is stored (sj_slow_calls_add) and clean. */
sj_slow_calls *sj_callgraph_slow_calls(sj_callgraph *graph);

#endif
