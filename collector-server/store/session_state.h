/* The writer's state of a session that is being received: ids, clock, modules, streams, call graph,
 * and the aggregates behind its aggregate rows.
 *
 * All of it can be read back from the database. Unwritten aggregates are recomputed from their
 * blocks (deferred_aggregates.c). So a state may be dropped at any time after a commit, and is
 * dropped after a rollback. */
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

/* The maximum number of streams that one frame may bring. A call id has 25 bits for the stream; a
 * recorder names at most half as many streams. */
enum { SJ_MOST_NEW_STREAMS = 1 << 15 };

typedef struct sj_stream_state {
    uint32_t number; /* number in the session */
    bool dirty;
    bool ended;
    bool entered; /* first_enter_ns is known */
    bool left;
    int64_t stream_id;
    uint64_t calls;
    int64_t first_enter_ns;
    int64_t last_leave_ns;
    uint32_t max_depth;
    /* Range of the finest timeline steps that changed since the coarser steps were computed.
     * steps_end is after the last of them; 0: none changed. */
    uint64_t first_step, steps_end;
} sj_stream_state;

typedef struct sj_module_range {
    uint32_t number;
    uint32_t first_function; /* session-wide id */
    uint32_t function_count;
    int64_t first_function_id; /* id in the table functions */
} sj_module_range;

/* Values of a node as they were last added to the aggregates below. */
typedef struct sj_node_shadow {
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t unwound;
    uint64_t untrusted;
    bool stored;
    /* 0: not checked yet; 1: the node's time is part of the edge's time; 2: the node lies inside
     * another call of the same edge. */
    uint8_t edge;
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
    uint32_t caller; /* 0: no recorded caller */
    uint32_t callee;
    bool dirty;
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
} sj_edge_totals;

/* Totals over the stored blocks of a session. */
typedef struct sj_session_totals {
    uint64_t blocks, bytes, calls, events, lost_calls, lost_events, folded_paths, folded_calls;
} sj_session_totals;

typedef struct sj_session_state {
    sj_session_id id;
    int64_t session_id;
    sj_sender owner; /* the device of the session and, unless zeroes, the session's secret */
    sj_tick_clock clock;
    struct sj_session_state *next_in_bucket; /* next in a bucket of the store */
    uint64_t last_used;
    uint64_t seen_in_batch;    /* the store's `batch` in which the row was last seen to exist */
    uint64_t receipt_noted_ns; /* MONOTONIC time of the row's last receipt note; 0: never */
    bool dirty;                /* the aggregates below differ from their rows */
    bool is_busy;              /* the last block was large */
    bool is_invalid;           /* the aggregates below lack blocks, and are rebuilt before use */
    bool is_rebuild;           /* the timeline is rebuilt, too (rebuild.c) */
    bool is_borrowed;          /* loaded only to write the aggregates */
    bool write_now;            /* the session has ended: the next commit writes its aggregates */
    bool has_ended;            /* more frames are unlikely */
    /* the aggregates could not be computed: see deferred_aggregates.c */
    bool is_quarantined;
    uint64_t quarantined_until_ns; /* MONOTONIC time of the next attempt */
    uint64_t dirty_since_ns;       /* MONOTONIC; 0: not known yet */
    int64_t first_uncounted_block; /* first block of the open batch that no row counts; 0: none */
    /* sessions.aggregates_valid_before_block, as loaded. 0: not set, so that uncounted_blocks is
     * complete. */
    int64_t stored_uncounted_from;
    /* Rising ids of the blocks that came since the state was loaded or written, and that no row
     * counts. */
    int64_t *uncounted_blocks;
    size_t uncounted_count, uncounted_capacity;
    sj_session_totals totals;
    uint64_t row_bytes;       /* sessions.stored_bytes, as last read or written here */
    sj_stream_state *streams; /* sorted by number */
    size_t stream_count, stream_capacity;
    sj_module_range *modules; /* sorted by first_function */
    size_t module_count, module_capacity;
    bool modules_loaded;
    size_t united_modules;     /* number of modules at the last check for repeated ones */
    bool has_repeated_modules; /* a module came again with other numbers for its functions */
    sj_callgraph *graph;       /* NULL: not loaded */
    uint32_t most_paths;       /* maximum number of call paths */
    uint32_t stored_nodes;     /* nodes below this number have rows */
    uint32_t folded_to;        /* number of paths left by the last folding; 0: none yet */
    bool is_renumbered;        /* rows of call paths still have the numbers from before a folding */
    sj_node_shadow *shadows;
    size_t shadow_count, shadow_capacity;
    sj_function_totals *functions;
    size_t function_count, function_capacity;
    sj_edge_totals *edges;
    size_t edge_count, edge_capacity;
    sj_hash_map function_map;
    sj_hash_map edge_map;
    sj_call_estimates *estimates; /* NULL: all calls read the clock */
} sj_session_state;

/* Loads the state of a stored session, without its call graph. The graph may later have
 * `most_paths` call paths. Returns SJ_ENOTFOUND if the session does not exist, SJ_ENOMEM, or an
 * error of the database. */
SJ_MUST_CHECK sj_status sj_session_state_load(sj_statements *sql, const sj_session_id *id,
                                              uint32_t most_paths, sj_session_state **state,
                                              sj_error *error);
void sj_session_state_free(sj_session_state *state);

/* Frees the call graph and the aggregates computed from it. */
void sj_session_drop_graph(sj_session_state *state);

/* Replaces the contents of a state with a newly loaded state of the same session. Keeps the members
 * that are not in the database, such as the position in the store, `uncounted_blocks` and the
 * quarantine. Frees `loaded`. */
void sj_session_state_replace(sj_session_state *state, sj_session_state *loaded);

/* Estimates the memory of a state in bytes. */
size_t sj_session_state_bytes(const sj_session_state *state);

/* Reads the call paths back, unless they are loaded. Returns SJ_ECORRUPT if they cannot be read
 * back, SJ_ENOMEM, or an error of the database. */
SJ_MUST_CHECK sj_status sj_session_load_graph(sj_statements *sql, sj_session_state *state,
                                              sj_error *error);

/* Reads the modules again, and replaces the modules in `state`. Returns SJ_ENOMEM, or an error of
 * the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_load_modules(sj_statements *sql, sj_session_state *state,
                                                sj_error *error);

/* Writes the functions.function_id of a session-wide id. Returns false if it is unknown. */
bool sj_session_function_id(const sj_session_state *state, uint32_t function, int64_t *id);

/* Returns a known stream, or NULL. */
sj_stream_state *sj_session_find_stream(sj_session_state *state, uint32_t number);

/* Finds or creates a stream, with its row and its state. The pointer is valid until the next call.
 * Returns SJ_ENOMEM, or an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_add_stream(sj_statements *sql, sj_session_state *state,
                                              uint32_t number, sj_stream_state **stream,
                                              sj_error *error);

/* Drops the streams whose rows a ROLLBACK TO removed, because the next new streams of any session
 * get their ids. Returns an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_forget_new_streams(sj_statements *sql, sj_session_state *state,
                                                      sj_error *error);

/* Adds what the sums of a node gained since the previous call to the aggregates of its function and
 * its edge. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_session_fold_node(sj_session_state *state, uint32_t node);

/* Adds a stored block, which the graph has replayed, to the aggregates of its stream and its
 * session (block_totals.c). */
void sj_session_count_block(sj_session_state *state, sj_stream_state *stream, const sj_block *block,
                            const sj_block_summary *summary, size_t bytes);

/* Writes everything that changed: call paths, functions, edges, streams and the session's totals
 * (aggregates.c). Afterwards the rows count every block. Does nothing if the session has been
 * removed. Returns SJ_ECORRUPT if a path has a function without a module, SJ_ENOMEM, or an error of
 * the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_flush(sj_statements *sql, sj_session_state *state,
                                         sj_error *error);

/* Adds the calls that an ended session sent, and that the database lacks, to the session's lost
 * calls. Writes gaps where they are missing. Does nothing while the session is being recorded.
 * sj_session_flush calls it last (missing_calls.c). Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_session_note_missing(sj_statements *sql, const sj_session_state *state,
                                                sj_error *error);

/* sj_session_load_slow_calls reads the longest calls back into the graph.
 * sj_session_flush_slow_calls writes the calls of functions whose longest calls changed
 * (slowest_calls_rows.c). Both return SJ_ECORRUPT if a call has an unknown function or stream,
 * SJ_ENOMEM, or an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_load_slow_calls(sj_statements *sql, sj_session_state *state,
                                                   sj_error *error);
SJ_MUST_CHECK sj_status sj_session_flush_slow_calls(sj_statements *sql, sj_session_state *state,
                                                    sj_error *error);

/* Recomputes the coarser timeline steps of a stream whose finer steps changed (timeline.c). Returns
 * an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_session_flush_timeline(sj_statements *sql, sj_stream_state *stream,
                                                  sj_error *error);

#endif
