/* The call graph of one session: who called whom, rebuilt from blocks.
 *
 * A calls B if both are on one stream, A's interval contains B's, and no call lies between them:
 * none that A contains and that contains B. Events are in their true order, so replaying them finds
 * these pairs (sj_callgraph_apply).
 *
 * Blocks may arrive in any order, and some may be missing. Every aggregate is a sum over the calls
 * that *ended* in a block; the key-frame knows their start and callee time.
 *
 * Nodes are call paths: a function with its chain of callers. Node 0 is the root of all threads.
 * Recursions deeper than SJ_PATH_FOLD_DEPTH are folded: the call is counted at its nearest ancestor
 * with the same function and the same caller. So a million levels of recursion need some thousand
 * nodes. Numbers of calls, self times and edges stay exact, and rows of `calls` are never folded.
 * Paths beyond a budget are folded, too, the rarest first (sj_callgraph_fold_rare).
 *
 * Not thread-safe: the store's writer owns the graph. Memory: about 100 bytes a node, plus its
 * histogram (path_histogram.h). */
#ifndef SJ_PROTO_CALLGRAPH_CALLGRAPH_H
#define SJ_PROTO_CALLGRAPH_CALLGRAPH_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"
#include "proto/callgraph/path_histogram.h"
#include "proto/callgraph/slow_calls.h"

enum {
    SJ_PATH_FOLD_DEPTH = 1024,
    SJ_SAMPLE_BITS = SJ_BLOCK_STEP_BITS /* the open path is sampled at the start of each step */
};

typedef struct sj_callgraph sj_callgraph;

/* Limits of the number of call paths of a session; a path takes about 165 bytes. Programs have
 * thousands of paths, compilers have millions. Between two blocks, paths beyond SJ_PATH_BUDGET are
 * folded. SJ_MOST_PATHS stops sessions that folding cannot shrink: those with too many distinct
 * pairs of caller and callee. */
enum { SJ_PATH_BUDGET = 1 << 19, SJ_MOST_PATHS = 1 << 21 };

/* Sums of the costs of a path's measured calls, indexed by sj_value_cost. */
typedef struct sj_path_cost {
    uint64_t calls;    /* measured calls */
    uint32_t function; /* session-wide id */
    uint32_t known;    /* bit set of the costs that at least one call has */
    uint64_t all[SJ_COSTS];
    /* only calls that lie in no other measured call of their function */
    uint64_t outermost[SJ_COSTS];
} sj_path_cost;

/* The aggregates of a call path. */
typedef struct sj_path_node {
    uint64_t calls; /* calls that ended */
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t min_ticks; /* UINT64_MAX while calls == 0 */
    uint64_t max_ticks;
    uint64_t unwound;
    uint64_t untrusted; /* calls with a sj_call_flag, or truncated */
    uint32_t parent;    /* node; 0: root */
    uint32_t function;  /* session-wide function id */
    uint32_t depth;     /* 0 for children of the root */
    bool recursive;     /* an ancestor has the same function */
    bool rare;  /* a child of the root that stands for its function as the caller in rare paths */
    bool dirty; /* changed since sj_callgraph_clean */
    sj_path_histogram histogram; /* durations, in ticks */
} sj_path_node;

/* A call that was entered in an earlier block and ended in this one. */
typedef struct sj_deferred_exit {
    uint64_t call_index;
    uint64_t end_ticks;
    uint64_t self_ticks;
    uint64_t jumped_ticks; /* when it ended by a tail call; 0: it did not */
    uint32_t ending;       /* sj_ending */
    uint32_t flags;        /* sj_call_flag */
} sj_deferred_exit;

/* The results of sj_callgraph_apply for one block, beside the changes of nodes. The graph owns the
 * arrays; they are valid until its next call. */
typedef struct sj_block_summary {
    uint64_t ended_calls;
    uint64_t max_duration_ticks;
    uint32_t max_depth; /* of calls entered in the block, counted from 1 */
    const sj_deferred_exit *late;
    size_t late_count;
    /* Each sample is the node of the innermost open call; 0: no call was open. There is a sample at
     * the block's first event, and at each event whose number in the stream is a multiple of
     * 2^SJ_SAMPLE_BITS. */
    const uint32_t *samples;
    size_t sample_count;
    sj_outline *outline; /* the caller may shorten it */
    /* Calls open at the block's end, outermost first. NULL if sj_callgraph_list_open was not
     * called, or if there are more than SJ_BLOCK_MAX_INLINE_FRAMES. */
    const sj_stack_frame *open;
    size_t open_count;
} sj_block_summary;

/* Finds the `count` outermost frames of a key-frame, which are not inline, in the DEEP_FRAMES
 * blocks that the caller stores. Writes them to `frames`, outermost first. Returns SJ_ENOTFOUND if
 * a frame is missing. */
typedef sj_status (*sj_stack_lookup)(void *context, uint32_t stream, uint32_t stack_reference,
                                     uint32_t count, sj_stack_frame *frames);

/* Makes an empty graph. The caller frees it with sj_callgraph_free. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_callgraph_new(sj_callgraph **graph);
void sj_callgraph_free(sj_callgraph *graph);

/* Replaces the limit SJ_MOST_PATHS by `most` nodes, root included. */
void sj_callgraph_limit(sj_callgraph *graph, uint32_t most);

/* Makes the summaries of later blocks list the calls that are open at the block's end. */
void sj_callgraph_list_open(sj_callgraph *graph);

/* Adds one decoded CALLS block. The caller makes sure that each block is added once. `lookup` may
 * be NULL if no block has stored frames. The graph is unchanged after SJ_ECORRUPT and after an
 * error of `lookup` (SJ_ENOTFOUND if it is NULL). After SJ_ENOMEM and SJ_ELIMIT (too many call
 * paths) the graph is unusable: free it and load it again. */
SJ_MUST_CHECK sj_status sj_callgraph_apply(sj_callgraph *graph, const sj_block *block,
                                           sj_stack_lookup lookup, void *lookup_context,
                                           sj_block_summary *summary);

/* Checks and summarises a block like sj_callgraph_apply, without the call graph of its session.
 * `gauge` is a graph that is only used for this; it stays small. All `samples` are 0. Errors as for
 * sj_callgraph_apply. */
SJ_MUST_CHECK sj_status sj_callgraph_measure(sj_callgraph *gauge, const sj_block *block,
                                             sj_stack_lookup lookup, void *lookup_context,
                                             sj_block_summary *summary);

/* Appends a copy of a stored node, with its histogram; `dirty` is cleared. Parents come before
 * children. The node gets the number sj_callgraph_node_count. Errors: SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_callgraph_restore(sj_callgraph *graph, const sj_path_node *node);

/* Adds aggregates that were computed elsewhere. The parent of nodes[i] is nodes[parent - 1], which
 * precedes it, or the root if parent is 0. Errors: SJ_ECORRUPT leaves the graph unchanged. After
 * SJ_ENOMEM and SJ_ELIMIT the graph is unusable: free it and load it again. */
SJ_MUST_CHECK sj_status sj_callgraph_merge(sj_callgraph *graph, const sj_path_node *nodes,
                                           uint32_t count);

/* The result of sj_callgraph_fold_rare. */
typedef struct sj_path_folding {
    uint32_t *moved; /* the new number of each old node */
    uint32_t moved_count;
    uint64_t paths; /* paths that were folded */
    uint64_t calls; /* ended calls of the folded paths */
} sj_path_folding;

/* Keeps about `keep` call paths and folds the others. The own weight of a path is its share of all
 * calls plus its share of all self time. A path counts as heavy as its heaviest descendant. The
 * heaviest paths are kept. A folded path keeps its direct caller and loses the outer callers. Its
 * sums go to a child of the `rare` node of its caller, so that sums per function and per edge stay
 * exact. A recursive path goes below the rare node of its own function, under its caller, so that
 * it stays recursive. A path nested in a call of the same edge goes below that edge and its caller
 * (rare A, B, A, B). If a folded path is called again, it starts at zero.
 *
 * All nodes get new numbers and become dirty. Afterwards there are at most `keep` nodes, plus the
 * children of the root, plus four nodes per edge. Do not call it while a block's summary is in use.
 * Release `folding` with sj_path_folding_deinit. Errors: SJ_ENOMEM leaves the graph unchanged. */
SJ_MUST_CHECK sj_status sj_callgraph_fold_rare(sj_callgraph *graph, uint32_t keep,
                                               sj_path_folding *folding);
void sj_path_folding_deinit(sj_path_folding *folding); /* A zeroed folding is allowed */

uint32_t sj_callgraph_node_count(const sj_callgraph *graph); /* with the root */

/* Returns the aggregates of a node; all zero if the node does not exist. The histogram is borrowed
 * until the graph changes. */
sj_path_node sj_callgraph_node(const sj_callgraph *graph, uint32_t node);

/* True if the node's calls lie in another call of the same function by the same caller, which
 * contains their time. False if the node does not exist. */
bool sj_callgraph_is_nested_edge(const sj_callgraph *graph, uint32_t node);

/* sj_callgraph_cost returns the sums of a node's measured calls, or NULL if none was measured.
 * sj_callgraph_cost_at enumerates the sj_callgraph_cost_count nodes that have such sums. Both
 * borrow until the graph changes. sj_callgraph_restore_cost adds sums to a restored node; errors:
 * SJ_ENOMEM. */
size_t sj_callgraph_cost_count(const sj_callgraph *graph);
const sj_path_cost *sj_callgraph_cost_at(const sj_callgraph *graph, size_t place);
const sj_path_cost *sj_callgraph_cost(const sj_callgraph *graph, uint32_t node);
SJ_MUST_CHECK sj_status sj_callgraph_restore_cost(sj_callgraph *graph, uint32_t node,
                                                  const sj_path_cost *cost);

/* Corrects the totals of folded recursions; call it before nodes are stored or sent. Then no time
 * is counted twice: a path's total is at least the sum of its callees' totals. Errors: SJ_ENOMEM
 * leaves all totals unchanged. */
SJ_MUST_CHECK sj_status sj_callgraph_settle(sj_callgraph *graph);

/* sj_callgraph_dirty returns the nodes that changed since the last sj_callgraph_clean, borrowed
 * until the graph changes. sj_callgraph_clean marks all nodes as unchanged. */
const uint32_t *sj_callgraph_dirty(const sj_callgraph *graph, size_t *count);
void sj_callgraph_clean(sj_callgraph *graph);

/* Brings the histograms of functions with dirty nodes up to date. May be called repeatedly. Errors:
 * SJ_ENOMEM; call it again before you read a histogram. */
SJ_MUST_CHECK sj_status sj_callgraph_fold_histograms(sj_callgraph *graph);

/* Returns the histogram of a function over all its paths, or NULL if none of its calls has ended.
 * Valid right after sj_callgraph_fold_histograms; borrowed until the graph changes. */
const sj_histogram *sj_callgraph_function_histogram(const sj_callgraph *graph, uint32_t function);

/* Returns the longest calls of the functions, borrowed. Before the first block, the owner may set
 * `floor_ticks`, add stored calls (sj_slow_calls_add) and call sj_slow_calls_clean. */
sj_slow_calls *sj_callgraph_slow_calls(sj_callgraph *graph);

#endif
