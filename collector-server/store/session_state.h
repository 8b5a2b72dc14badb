/* What the writer keeps in memory of a session that is being received: its ids, clock, modules,
 * streams, call graph and the aggregates that its aggregate rows are written from. Everything in it
 * can be read back from the database (aggregates that were not written yet are made again from
 * their blocks: deferred_aggregates.c), so it may be dropped at any time after a commit, and is
 * dropped after a rollback.
 */
#ifndef SJ_COLLECTOR_SERVER_STORE_SESSION_STATE_H
#define SJ_COLLECTOR_SERVER_STORE_SESSION_STATE_H

#include "collector-server/store/call_estimates.h"
#include "collector-server/store/sender.h"
#include "collector-server/store/statements.h"
#include "collector-server/store/ticks.h"
#include "proto/base/hash_map.h"
#include "proto/base/ids.h"
#include "proto/callgraph/callgraph.h"

#include <stdbool.h>

/* Streams that one frame may bring. A call's id has 25 bits of its stream; a recorder names half as
 * many at most. */
enum { SJ_MOST_NEW_STREAMS = 1 << 15 };

typedef struct sj_stream_state {
    uint32_t number; /* in the session */
    bool dirty;
    bool ended;
    bool entered; /* first_enter_ns is known */
    bool left;
    int64_t stream_id;
    uint64_t calls;
    int64_t first_enter_ns;
    int64_t last_leave_ns;
    uint32_t max_depth;
    uint64_t first_step, steps_end; /* finest steps of the timeline that blocks added to since the
                                       coarser ones were made; steps_end 0: none */
} sj_stream_state;

typedef struct sj_module_range {
    uint32_t number;
    uint32_t first_function; /* session-wide id */
    uint32_t function_count;
    int64_t first_function_id; /* in the functions table */
} sj_module_range;

/* Values of a node as they were last added to the aggregates below. */
typedef struct sj_node_shadow {
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t unwound;
    uint64_t untrusted;
    bool stored;
    uint8_t edge; /* 1: its time is part of its edge's; 2: it lies in another call of the edge; 0:
                     not looked at */
} sj_node_shadow;

typedef struct sj_function_totals {
    uint32_t function;
    bool dirty;
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t min_ticks;
    uint64_t max_ticks;
    uint64_t unwound;
    uint64_t untrusted;
} sj_function_totals;

typedef struct sj_edge_totals {
    uint32_t caller; /* 0: nothing recorded */
    uint32_t callee;
    bool dirty;
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
} sj_edge_totals;

/* What is stored of a session. */
typedef struct sj_session_totals {
    uint64_t blocks, bytes, calls, events, lost_calls, lost_events, folded_paths, folded_calls;
} sj_session_totals;

typedef struct sj_session_state {
    sj_session_id id;
    int64_t session_id;
    sj_sender owner; /* its device and, unless `secret` is zeroes, its secret */
    sj_tick_clock clock;
    struct sj_session_state *next_in_bucket; /* the store's */
    uint64_t last_used;
    uint64_t seen_in_batch; /* the store's `batch` when its row was last seen to be there */
    uint64_t
        receipt_noted_ns; /* MONOTONIC; when its row was told last that frames come; 0: never */
    bool dirty;           /* the aggregates below differ from their rows */
    bool is_busy;         /* its last block was large */
    bool is_invalid;      /* the aggregates below lack blocks; they are rebuilt before use */
    bool is_rebuild;      /* its timeline is rebuilt, too (rebuild.c) */
    bool is_borrowed;     /* loaded only to write its aggregates */
    bool write_now;       /* the next commit writes them: the session has ended */
    bool is_quarantined;  /* its aggregates could not be computed: see deferred_aggregates.c */
    uint64_t quarantined_until_ns; /* MONOTONIC; then they are tried again */
    uint64_t dirty_since_ns;       /* MONOTONIC; 0: not known yet */
    int64_t first_uncounted_block; /* first block of the open batch that no row counts; 0: none */
    int64_t stored_uncounted_from; /* as loaded: sessions.aggregates_valid_before_block; 0: none, so
                                  that uncounted_blocks has all */
    int64_t *uncounted_blocks;     /* ids of those that no row counts, as far as they came since the
                                 state was loaded or written; rising */
    size_t uncounted_count, uncounted_capacity;
    sj_session_totals totals;
    sj_stream_state *streams; /* by rising number */
    size_t stream_count, stream_capacity;
    sj_module_range *modules; /* by rising first_function */
    size_t module_count, module_capacity;
    bool modules_loaded;
    size_t united_modules;     /* so many were there when it was seen whether one */
    bool has_repeated_modules; /* came again, with other numbers of its functions */
    sj_callgraph *graph;       /* NULL: not loaded */
    uint32_t most_paths;       /* that it may have */
    uint32_t stored_nodes;     /* nodes below this number have rows */
    uint32_t folded_to;        /* as many were left when paths were folded last; 0: none were */
    bool is_renumbered;        /* rows of call paths bear numbers of before a folding */
    sj_node_shadow *shadows;
    size_t shadow_count, shadow_capacity;
    sj_function_totals *functions;
    size_t function_count, function_capacity;
    sj_edge_totals *edges;
    size_t edge_count, edge_capacity;
    sj_hash_map function_map;
    sj_hash_map edge_map;
    sj_call_estimates *estimates; /* NULL: nothing was counted without a clock */
} sj_session_state;

/* sj_session_state_load makes the state of a stored session, which may have `most_paths` call
 * paths, graph not loaded. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_session_state_load(sj_statements *sql, const sj_session_id *id,
                                              uint32_t most_paths, sj_session_state **state,
                                              sj_error *error);
void sj_session_state_free(sj_session_state *state);

/* sj_session_drop_graph forgets the call graph and the aggregates made of it. */
void sj_session_drop_graph(sj_session_state *state);

/* sj_session_state_replace puts what was loaded anew into the place of an older state of the same
 * session, which keeps its place in the store. Frees `loaded`. */
void sj_session_state_replace(sj_session_state *state, sj_session_state *loaded);

/* sj_session_state_bytes estimates the memory of a state. */
size_t sj_session_state_bytes(const sj_session_state *state);

/* sj_session_load_graph reads the call paths back, if they are not there yet. SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_session_load_graph(sj_statements *sql, sj_session_state *state,
                                              sj_error *error);

/* sj_session_load_modules reads the modules (again). */
SJ_MUST_CHECK sj_status sj_session_load_modules(sj_statements *sql, sj_session_state *state,
                                                sj_error *error);

/* sj_session_function_id gives the functions.function_id of a session-wide id; false: unknown. */
bool sj_session_function_id(const sj_session_state *state, uint32_t function, int64_t *id);

/* sj_session_find_stream returns a stream that is known, or NULL. */
sj_stream_state *sj_session_find_stream(sj_session_state *state, uint32_t number);

/* sj_session_add_stream finds or creates a stream (row and state). The pointer lasts until the next
 * call. */
SJ_MUST_CHECK sj_status sj_session_add_stream(sj_statements *sql, sj_session_state *state,
                                              uint32_t number, sj_stream_state **stream,
                                              sj_error *error);

/* sj_session_forget_new_streams forgets the streams whose rows a ROLLBACK TO took back: the next
 * new stream of any session gets their ids. */
SJ_MUST_CHECK sj_status sj_session_forget_new_streams(sj_statements *sql, sj_session_state *state,
                                                      sj_error *error);

/* sj_session_fold_node adds what a node gained since its last fold to the aggregates of its
 * function and its edge. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_session_fold_node(sj_session_state *state, uint32_t node);

/* sj_session_count_block adds a stored block, already replayed, to the aggregates of its stream and
 * its session (block_totals.c). */
void sj_session_count_block(sj_session_state *state, sj_stream_state *stream, const sj_block *block,
                            const sj_block_summary *summary, size_t bytes);

/* sj_session_flush writes everything that changed: call paths, function and edge aggregates,
 * streams, aggregates of the session; afterwards every block is counted (aggregates.c). Does
 * nothing when the session has been removed. */
SJ_MUST_CHECK sj_status sj_session_flush(sj_statements *sql, sj_session_state *state,
                                         sj_error *error);

/* sj_session_note_missing counts what an ended session sent and the database does not hold, as a
 * part of the session's lost calls, and writes gaps that say where it is missing. Does nothing
 * while the session is recorded. sj_session_flush ends with it (missing_calls.c). SJ_ENOMEM,
 * SJ_EIO. */
SJ_MUST_CHECK sj_status sj_session_note_missing(sj_statements *sql, const sj_session_state *state,
                                                sj_error *error);

/* sj_session_load_slow_calls reads the longest calls back into the graph;
 * sj_session_flush_slow_calls writes those that changed (slowest_calls_rows.c). */
SJ_MUST_CHECK sj_status sj_session_load_slow_calls(sj_statements *sql, sj_session_state *state,
                                                   sj_error *error);
SJ_MUST_CHECK sj_status sj_session_flush_slow_calls(sj_statements *sql, sj_session_state *state,
                                                    sj_error *error);

/* sj_session_flush_timeline makes the coarser steps of a stream anew, as far as finer ones changed
 * (timeline.c). */
SJ_MUST_CHECK sj_status sj_session_flush_timeline(sj_statements *sql, sj_stream_state *stream,
                                                  sj_error *error);

#endif
