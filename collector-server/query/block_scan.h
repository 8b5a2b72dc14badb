/* Block scan: visits the stored blocks that can hold the wanted calls.
 *
 * Blocks are visited stream by stream, and in a stream in the order of their calls. So call ids
 * rise from block to block. The scan skips a block if its times, depths, function bitmap or longest
 * duration exclude wanted calls. It decodes only the needed parts of a block. It does not decode
 * the block if the block's outline (scan_outline.h) has all calls of the wanted duration.
 *
 * A scan reuses the decoder and the columns for each block, so memory does not grow with the number
 * of blocks. A block that cannot be read is skipped and named in the connection's warnings. Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_BLOCK_SCAN_H
#define SJ_COLLECTOR_SERVER_QUERY_BLOCK_SCAN_H

#include "collector-server/query/block_rows.h"
#include "collector-server/query/late_exits.h"
#include "collector-server/query/query_state.h"
#include "collector-server/query/scan_codes.h"
#include "collector-server/query/tick_scale.h"
#include "collector-server/store/block_files.h"
#include "proto/base/progress.h"

#include <stdbool.h>

enum { SJ_SCAN_MAX_FUNCTIONS = 8, SJ_SCAN_MAX_LONG_CALLS = 4096 };

/* The wanted calls. Each range includes its first and its last value. sj_scan_everything is the
 * filter for all calls. */
typedef struct sj_scan_filter {
    int64_t first_session, last_session;
    int64_t first_stream, last_stream;
    int64_t first_call, last_call; /* call ids */
    int64_t first_start_ns, last_start_ns;
    bool ended;              /* only calls that have ended */
    int64_t min_duration_ns; /* only with `ended` */
    int64_t first_end_ns;    /* only with `ended`: the earliest end */
    int64_t min_depth, max_depth;
    bool by_thread;
    int64_t thread_id;
    bool by_function;
    int64_t function_id;
    /* NULL, or the wanted function_ids, sorted, instead of `function_id`; borrowed */
    const int64_t *functions;
    size_t function_count;
    /* The scan ignores these conditions. Its caller tests each row for them. */
    bool by_parent;
    int64_t parent_id;
    bool by_caller;
    int64_t caller_function_id;
} sj_scan_filter;

extern const sj_scan_filter sj_scan_everything;

/* True if the filter wants calls of a function. The function_id 0 (unknown) matches only a filter
 * without by_function. */
bool sj_scan_filter_matches(const sj_scan_filter *filter, int64_t function_id);

/* The parts of a block to decode. */
typedef enum sj_scan_want {
    SJ_SCAN_STRUCTURE = SJ_WANT_STRUCTURE | SJ_WANT_TAIL_CALLS,
    SJ_SCAN_TIMES = SJ_SCAN_STRUCTURE | SJ_WANT_TIMES,
    SJ_SCAN_SUMS = SJ_WANT_ALL /* for block_sums.h, which does not need rows */
} sj_scan_want;

typedef struct sj_module_range {
    uint32_t first; /* session-wide id of the module's first function */
    uint32_t count;
    int64_t first_function_id;
} sj_module_range;

/* A block, with its first call and the times of its first and last event. */
typedef struct sj_block_place {
    int64_t block_id;
    int64_t stream_id;
    uint64_t first_call;
    uint64_t first_ticks;
    uint64_t last_ticks;
} sj_block_place;

/* The session of the current stream. */
typedef struct sj_scan_session {
    int64_t session_id;
    bool valid; /* the members below are of session_id */
    sj_tick_scale scale;
    uint64_t started_ticks;
    sj_module_range *modules; /* sorted by `first` */
    size_t module_count, module_capacity;
    /* The filter, converted to this session's clock and ids: */
    uint64_t first_start, last_start; /* ticks; no call matches if first > last */
    uint64_t min_duration;            /* minimum duration of a call in ticks */
    uint64_t first_end;               /* earliest end of a call in ticks */
    uint32_t functions[SJ_SCAN_MAX_FUNCTIONS];
    size_t function_count;
    bool bitmap_useless; /* more ids than `functions` can hold */
} sj_scan_session;

typedef struct sj_block_scan {
    sj_query_state *state;
    sj_scan_filter filter;
    unsigned want; /* sj_scan_want; 0: only headers */
    sqlite3_stmt *streams, *blocks, *longest, *outlasting, *clock, *modules, *bounds, *stacks;
    sqlite3_stmt *outlines, *contents;
    sj_block_files *files, *stack_files; /* two, because stacks are read while a block is in use */
    sj_late_exits late;
    sj_block_decoder *decoder;
    sj_block_decoder *stack_decoder;
    sj_scan_session session;
    int64_t stream_id;
    int64_t thread_id; /* INT64_MIN: none */
    int64_t block_id;
    bool has_contents; /* `contents` is at the block's row */
    bool in_stream;    /* `blocks` is bound to the current stream */
    sj_progress_work work;
    uint64_t blocks_begun; /* number of visited blocks, for `work` */
    sj_block block;        /* decoded; with want 0 only first_call and call_count of the header */
    sj_block_rows rows;
    bool rows_have_times;
    /* Set by the caller before the scan: rows may come from outlines. Outlines lack tail calls. */
    bool takes_outlines;
    bool outlined; /* the rows of the current block come from its outline */
    /* Set by the caller before the scan, or NULL. The scan calls it for each block whose calls all
     * start in the wanted window. If it returns true, the scan does not read the block, and `block`
     * is not set. */
    bool (*is_known)(void *context, const sj_block_place *place);
    void *known_context;
    sj_block_place place; /* the current block */
    bool frames_read;     /* with `outlined`: the calls open at the block's start were read */
    uint32_t *outline_functions;
    int64_t *function_ids;  /* by dictionary entry; 0: unknown */
    bool *function_matches; /* by dictionary entry: the filter wants the function */
    size_t dictionary_capacity;
    /* With a minimum duration: numbers in the stream of calls that ended in a later block than they
     * began, and that may last that long. */
    uint64_t *long_calls;
    size_t long_count;
    bool long_overflow; /* too many candidates: any block may hold one */
    /* With an earliest end: `outlasted` is the number in the stream of the first call of the block
     * that contains that time. `outlasting_calls` has the numbers of the calls of earlier blocks
     * that end at that time or later. */
    uint64_t outlasted;
    uint64_t *outlasting_calls;
    size_t outlasting_count;
    bool outlasting_overflow; /* too many calls: any earlier block may hold one */
} sj_block_scan;

/* sj_block_scan_open initializes a scan. sj_block_scan_close frees it; it is safe on a zeroed scan,
 * and needed after a failed open. The functions of this header return SQLite result codes, because
 * virtual tables call them. */
int sj_block_scan_open(sj_block_scan *scan, sj_query_state *state);
void sj_block_scan_close(sj_block_scan *scan);

/* Starts a scan with a filter; ends a scan that is running. */
int sj_block_scan_start(sj_block_scan *scan, const sj_scan_filter *filter, unsigned want);

/* Moves to the next block that may hold wanted calls. Returns SQLITE_ROW, SQLITE_DONE or an
 * error. */
int sj_block_scan_next(sj_block_scan *scan);

/* Fills scan->rows from the current block; `want` must not be 0. If `resolve`, includes the ends of
 * calls that ended in later blocks. Returns SJ_SCAN_CONTRADICTION if the block's events contradict
 * each other. Then the warnings name the block, and the scan can continue. */
int sj_block_scan_rows(sj_block_scan *scan, bool resolve);

/* Adds a warning that the calls of the current block are missing, and why. */
void sj_block_scan_warn(sj_block_scan *scan, const char *why);

/* Writes the call at `depth` that was open at the start of the block to `frame`. Reads the
 * outermost frames of a deep stack from DEEP_FRAMES blocks. Returns SQLITE_NOTFOUND if the frame is
 * missing. */
int sj_block_scan_frame(sj_block_scan *scan, uint32_t depth, sj_stack_frame *frame);

/* Returns an upper bound of the number of calls of a block that are open at the same time. The
 * block's structure must be decoded. */
static inline size_t sj_scan_most_open(const sj_block *block)
{
    const int64_t most = block->depths.entered - block->depths.lowest;
    return most > 0 ? (size_t)most : 0;
}

/* Returns the function_id of a session-wide function id, 0 if its module is unknown. */
int64_t sj_scan_function_id(const sj_scan_session *session, uint32_t function);

/* Converts ticks to ns since the session's start. A time before the start is negative. */
static inline int64_t sj_scan_ns(const sj_scan_session *session, uint64_t ticks)
{
    return ticks >= session->started_ticks
               ? sj_ticks_to_ns(&session->scale, ticks - session->started_ticks)
               : -sj_ticks_to_ns(&session->scale, session->started_ticks - ticks);
}

#endif
