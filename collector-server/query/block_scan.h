/* A walk over the stored blocks that can hold the calls one looks for.
 *
 * Blocks come by stream and, within a stream, in the order of their calls, so that call ids rise
 * from block to block. A block is read only when its index entry, its times, its function bitmap
 * and its longest duration leave open that it holds such a call, and decoded only as far as asked;
 * where its outline has all that are long enough, it is not.
 * One decoder and one set of columns are reused: memory does not depend on how much is walked over.
 * A block that cannot be read is named in the connection's warnings and left out.
 *
 * One thread at a time; steps statements of the connection that it was opened on. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_SCAN_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_SCAN_H

#include "collector-server/query/block_rows.h"
#include "collector-server/query/late_exits.h"
#include "collector-server/query/query_state.h"
#include "collector-server/query/tick_scale.h"
#include "collector-server/store/block_files.h"
#include "proto/base/progress.h"

#include <stdbool.h>

enum { SJ_SCAN_MAX_FUNCTIONS = 8, SJ_SCAN_MAX_LONG_CALLS = 4096 };

/* What is looked for. Ranges are inclusive; sj_scan_everything gives the widest. */
typedef struct sj_scan_filter {
    int64_t first_session, last_session;
    int64_t first_stream, last_stream;
    int64_t first_call, last_call; /* call ids */
    int64_t first_start_ns, last_start_ns;
    bool ended;              /* only calls that have a duration */
    int64_t min_duration_ns; /* only with `ended` */
    int64_t first_end_ns;    /* likewise: the least time of their end */
    int64_t min_depth, max_depth;
    bool by_thread;
    int64_t thread_id;
    bool by_function;
    int64_t function_id;
    const int64_t *functions; /* instead of `function_id`: any of these, rising; borrowed */
    size_t function_count;
    /* decided row by row: the walk leaves no block out for these */
    bool by_parent;
    int64_t parent_id;
    bool by_caller;
    int64_t caller_function_id;
} sj_scan_filter;

extern const sj_scan_filter sj_scan_everything;

/* sj_scan_filter_takes returns whether a function is one that is asked for; 0 is none. */
bool sj_scan_filter_takes(const sj_scan_filter *filter, int64_t function_id);

typedef enum sj_scan_want {
    SJ_SCAN_STRUCTURE = SJ_WANT_STRUCTURE | SJ_WANT_TAIL_CALLS,
    SJ_SCAN_TIMES = SJ_SCAN_STRUCTURE | SJ_WANT_TIMES,
    SJ_SCAN_SUMS = SJ_WANT_ALL /* no rows */
} sj_scan_want;

typedef struct sj_module_range {
    uint32_t first; /* session-wide id of the module's first function */
    uint32_t count;
    int64_t first_function_id;
} sj_module_range;

/* Which block a row of the walk is of. */
typedef struct sj_block_place {
    int64_t block_id;
    int64_t stream_id;
    uint64_t first_call;
    uint64_t first_ticks;
    uint64_t last_ticks;
} sj_block_place;

/* The session of the stream that the walk is in. */
typedef struct sj_scan_session {
    int64_t session_id;
    bool valid;
    sj_tick_scale scale;
    uint64_t started_ticks;
    sj_module_range *modules; /* by rising `first` */
    size_t module_count, module_capacity;
    /* the filter in this session's terms */
    uint64_t first_start, last_start; /* ticks; empty when first > last */
    uint64_t min_duration;            /* ticks that a call takes at least */
    uint64_t first_end;               /* ticks that it ends at, or later */
    uint32_t functions[SJ_SCAN_MAX_FUNCTIONS];
    size_t function_count;
    bool bitmap_useless; /* more ids than `functions` holds */
} sj_scan_session;

typedef struct sj_block_scan {
    sj_query_state *state;
    sj_scan_filter filter;
    unsigned want; /* sj_scan_want; 0: headers only */
    sqlite3_stmt *streams, *blocks, *longest, *outlasting, *clock, *modules, *bounds, *stacks;
    sqlite3_stmt *outlines, *contents;
    sj_block_files *files, *stack_files; /* a stack is read while its block is in use */
    sj_late_exits late;
    sj_block_decoder *decoder;
    sj_block_decoder *stack_decoder;
    sj_scan_session session;
    int64_t stream_id;
    int64_t thread_id; /* INT64_MIN: none */
    int64_t block_id;
    bool has_contents; /* `contents` is at the block's row */
    bool in_stream;
    sj_progress_work work; /* the walk, from its begin to its end */
    uint64_t blocks_begun; /* of it */
    sj_block block;        /* decoded; with want 0 only the header's first_call and call_count */
    sj_block_rows rows;
    bool rows_have_times;
    /* Set before a walk: rows may come from outlines, which know nothing of tail calls. */
    bool takes_outlines;
    bool outlined; /* the rows of this block do: `block` has what rows need */
    /* Set before a walk, or NULL: asked about a block before it is read, if all that was entered in
     * it is within the times asked for. True: it is not read, and `block` not set. */
    bool (*is_known)(void *context, const sj_block_place *place);
    void *known_context;
    sj_block_place place; /* of the block that the walk is at */
    bool frames_read;
    uint32_t *outline_functions;
    int64_t *function_ids; /* per dictionary entry; 0: not known */
    bool *function_matches;
    size_t dictionary_capacity;
    /* with a least duration: calls of the stream that ended in a later block that has such a call
     */
    uint64_t *long_calls;
    size_t long_count;
    bool long_overflow; /* too many to list: any block may have one */
    /* with a least end: the first call of the block that runs then, and calls of earlier ones that
     * end after it */
    uint64_t outlasted;
    uint64_t *outlasting_calls;
    size_t outlasting_count;
    bool outlasting_overflow;
} sj_block_scan;

/* sj_block_scan_open prepares a walk; sj_block_scan_close ends it (safe on a zeroed one). The rest
 * returns SQLite result codes: this lives inside of virtual tables. */
int sj_block_scan_open(sj_block_scan *scan, sj_query_state *state);
void sj_block_scan_close(sj_block_scan *scan);

/* sj_block_scan_start begins (again) with a filter. */
int sj_block_scan_start(sj_block_scan *scan, const sj_scan_filter *filter, unsigned want);

/* sj_block_scan_next moves to the next block: SQLITE_ROW, SQLITE_DONE or an error. */
int sj_block_scan_next(sj_block_scan *scan);

/* sj_block_scan_rows makes the columns of the block (want must not be 0), late ends included when
 * `resolve`. SQLITE_CORRUPT: the block's events contradict each other; it was named in the warnings
 * and the walk can go on with the next. */
int sj_block_scan_rows(sj_block_scan *scan, bool resolve);

/* sj_block_scan_warn names the current block in the warnings: its calls are left out, and why. */
void sj_block_scan_warn(sj_block_scan *scan, const char *why);

/* sj_block_scan_frame gives the call that was open at the start of the block at `depth`; deep ones
 * are read from their stack block. SQLITE_NOTFOUND when that is missing. */
int sj_block_scan_frame(sj_block_scan *scan, uint32_t depth, sj_stack_frame *frame);

/* sj_scan_most_open returns how many of the calls that are entered in a block are open at once, at
 * most. The block's structure was decoded. */
static inline size_t sj_scan_most_open(const sj_block *block)
{
    const int64_t most = block->depths.entered - block->depths.lowest;
    return most > 0 ? (size_t)most : 0;
}

/* sj_scan_function_id maps a session-wide function id; 0 when its module is not known. */
int64_t sj_scan_function_id(const sj_scan_session *session, uint32_t function);

/* sj_scan_ns gives the time of a tick count since the session's start; negative before it. */
static inline int64_t sj_scan_ns(const sj_scan_session *session, uint64_t ticks)
{
    return ticks >= session->started_ticks
               ? sj_ticks_to_ns(&session->scale, ticks - session->started_ticks)
               : -sj_ticks_to_ns(&session->scale, session->started_ticks - ticks);
}

#endif
