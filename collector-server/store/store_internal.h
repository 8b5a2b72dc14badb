/* Internal header of the store. Files outside this folder do not include it. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORE_INTERNAL_H
#define SJ_COLLECTOR_SERVER_STORE_STORE_INTERNAL_H

#include "collector-server/store/block_files.h"
#include "collector-server/store/file_watch.h"
#include "collector-server/store/frame_handlers.h"
#include "collector-server/store/session_state.h"
#include "collector-server/store/store.h"
#include "proto/callgraph/profile.h"
#include "proto/callgraph/stack_walk.h"
#include "proto/wire/sojourn.pb-c.h"

#include <time.h>

enum { SJ_STORE_BUCKETS = 1024 };

enum { SJ_STORE_ARENA_BYTES = 8 << 20 };

struct sj_store {
    sqlite3 *database;
    sj_statements sql;
    char *path;
    uint64_t max_bytes;
    uint64_t reserve_bytes;
    size_t callgraph_memory_bytes;
    uint32_t most_paths;
    uint32_t path_budget;
    size_t held_bytes; /* estimate for all sessions */
    bool in_batch;
    uint64_t batch;          /* number of the batch that was begun last */
    bool full;               /* the store was full at the begin of the batch: refuse blocks */
    const sj_sender *sender; /* sender of the current frame; NULL: no frame is being applied */
    /* session_id, if the current frame was refused because the session belongs to another
     * sender. */
    int64_t foreign_session;
    /* session of the current frame, set by the last sj_store_session; NULL: none */
    sj_session_state *touched;
    bool begins_session; /* the current frame stored a new session */
    sj_device_quotas quotas;
    uint64_t lost_after_ms; /* how long a session may be silent before it has ended; 0: forever */
    /* MONOTONIC; the first check is `lost_after_ms` after the opening. */
    uint64_t next_silence_check_ns;
    uint64_t use_count;
    uint64_t applied_blocks;
    sj_session_state **sessions; /* cached sessions, unordered */
    size_t session_count, session_capacity;
    sj_session_state *buckets[SJ_STORE_BUCKETS]; /* the cached sessions by id */
    /* Two readers, because a stack is read while the bytes of its block are in use. */
    sj_block_files *files, *stack_files;
    sj_block_decoder *decoder;
    sj_block_decoder *stack_decoder;
    uint32_t *united_functions; /* function numbers of the current block: united_functions.c */
    size_t united_function_capacity;
    sj_stack_frame *united_frames;
    size_t united_frame_capacity;
    sj_callgraph *scratch_graph; /* measures blocks of sessions without a graph */
    uint8_t *scratch;
    size_t scratch_capacity;
    sj_store_counters counters; /* include the calls of the open batch */
    int wal_pages;              /* size of the log at the last commit, in pages */
    uint64_t wal_inode;         /* inode of the log at the last commit; 0: no commit yet */
    sj_file_watch watch;
    uint32_t noted_log[2]; /* salts of the log whose base was noted last: foreign_log.h */
    uint64_t aggregates_delay_ns;
    bool has_leftovers;        /* aggregates deferred by another process may be left */
    int64_t recovered_to;      /* session_id up to which leftovers were searched */
    uint64_t next_recovery_ns; /* MONOTONIC */
    struct {
        uint8_t *bytes; /* bump memory for unpacked headers, reused by each frame */
        size_t used;
    } arena;
};

/* Finds a session by the id in a message, or loads it from the database. Returns SJ_ECORRUPT if the
 * id does not have 16 bytes. Returns SJ_ENOTFOUND if the session does not exist, and SJ_EINVAL if
 * the session belongs to another sender. The message names the session. Returns SJ_ENOMEM, or an
 * error of the database. */
SJ_MUST_CHECK sj_status sj_store_session(sj_store *store, const uint8_t *id, size_t id_bytes,
                                         sj_session_state **state, sj_error *error);

/* Checks, once per batch, that the row of a cached session still exists and counts the bytes that
 * this store knows. Between batches, other processes remove sessions, or join them with parts
 * from another file, and new sessions reuse row ids. So use the cached state in a batch only after
 * this call succeeded. Returns SJ_ENOTFOUND if the session was removed or changed. */
SJ_MUST_CHECK sj_status sj_store_see_session(sj_store *store, sj_session_state *state,
                                             sj_error *error);

/* Returns `status`. If a failure has no sentence in `error`, adds one. Functions that run out of
 * memory return only the status. */
SJ_MUST_CHECK sj_status sj_store_explain(sj_status status, sj_error *error);

/* Returns SJ_EFULL if the store was full at the begin of the batch. */
SJ_MUST_CHECK sj_status sj_store_check_full(const sj_store *store, sj_error *error);

/* Notes in the session's row that a frame of the session came, at most once per 10 s. Call it in a
 * batch. Returns an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_note_receipt(sj_store *store, sj_session_state *state,
                                              sj_error *error);

/* Ends sessions that sent no frame for `lost_after_ms` as "lost contact", in a transaction of its
 * own. Checks at most once a minute. Does nothing in a batch. Returns SJ_ENOMEM, or an error of the
 * database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_end_silent(sj_store *store, sj_error *error);

/* Returns CLOCK_REALTIME in nanoseconds. */
static inline int64_t sj_store_realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* True if the current frame comes from the device that it names. */
bool sj_store_is_own_device(const sj_store *store, const uint8_t *uuid, size_t uuid_bytes);

/* Drops the cached states of all sessions, or only of the borrowed ones. Does not write their
 * aggregates. */
void sj_store_forget_sessions(sj_store *store, bool only_borrowed);

/* True if a session has a call graph in memory, or may get one. In the latter case, counts the
 * memory of a new graph. */
bool sj_store_may_hold_graph(sj_store *store, const sj_session_state *state);

/* Drops the graph and totals of a session. They are rebuilt from its blocks. */
void sj_store_forget_graph(sj_store *store, sj_session_state *state);

/* True if the memory of all sessions is over the limit that applies to this session. */
bool sj_store_holds_too_much(const sj_store *store, const sj_session_state *state);

/* Drops graphs, and then sessions, that were used longest ago, until the others fit into the
 * memory. Before it drops a session, writes its unwritten aggregates. Keeps the session used last,
 * and sessions whose aggregates the next commit writes. Call it in a batch, too, because one batch
 * may load more sessions than memory can hold. Returns the errors of
 * sj_store_write_or_quarantine. */
SJ_MUST_CHECK sj_status sj_store_trim_sessions(sj_store *store, sj_error *error);

/* Returns at least `size` bytes, valid until the next call. Returns SJ_ENOMEM, or SJ_ELIMIT beyond
 * 4 GiB. */
SJ_MUST_CHECK sj_status sj_store_scratch(sj_store *store, size_t size, uint8_t **bytes);

/* Returns the arena as an allocator for protobuf-c. A message that needs more memory than the arena
 * has is refused. The next frame frees everything in it. */
ProtobufCAllocator sj_store_allocator(sj_store *store);

/* Compares a block with the stored block that has all its events. Returns SJ_OK if they agree on
 * these events, and SJ_EEXIST if not. Other errors say why the comparison failed. Uses both
 * decoders. */
SJ_MUST_CHECK sj_status sj_store_compare_block(sj_store *store, int64_t stored_block,
                                               sj_slice bytes, sj_error *error);

/* Stores a block in quarantine, because its events contradict stored ones. Stores nothing if too
 * many blocks are in quarantine. Returns an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_quarantine(sj_store *store, const sj_session_state *state,
                                            const sj_block_header *header, sj_slice bytes,
                                            const char *reason, sj_error *error);

/* Drops the cached aggregates of a session, because they are not valid. They are computed from its
 * rows and blocks before they are used again. */
void sj_store_invalidate(sj_session_state *state);

/* If the state of a session is behind, reads it again and replays the blocks that its rows do not
 * count. Pointers to its streams become invalid.
 *
 * Returns SJ_ENOTFOUND if the session was removed. Returns SJ_ECORRUPT or SJ_EVERSION if its rows
 * cannot be read back. Returns SJ_ENOMEM or SJ_EIO. After a failure, the state is still behind. */
SJ_MUST_CHECK sj_status sj_store_rebuild_aggregates(sj_store *store, sj_session_state *state,
                                                    sj_error *error);

/* Folds the rarest call paths of a session that holds more than its budget. Call it between two
 * blocks. If it sets `is_renumbered`, the caller writes the aggregates in the same transaction
 * (path_folding.c). Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_fold_rare_paths(sj_store *store, sj_session_state *state,
                                                 sj_error *error);

/* True if a failure was caused by the session itself, not by disk or memory. Other sessions can
 * then continue. False for SJ_OK. */
static inline bool sj_store_is_own_fault(sj_status status)
{
    return status != SJ_OK && status != SJ_EFULL && status != SJ_EIO && status != SJ_ENOMEM &&
           status != SJ_EAGAIN;
}

/* Writes the aggregates of one session now. If that is impossible, quarantines the session with the
 * reason (sessions.quarantine_reason). Its blocks are still stored, and its aggregates are retried
 * later. Returns only errors that the session did not cause. Call it in a batch. */
SJ_MUST_CHECK sj_status sj_store_write_or_quarantine(sj_store *store, sj_session_state *state,
                                                     sj_error *error);

/* Writes the aggregates of one session now. Returns the errors of sj_store_rebuild_aggregates,
 * except SJ_ENOTFOUND, and of sj_session_flush. */
SJ_MUST_CHECK sj_status sj_store_write_session(sj_store *store, sj_session_state *state,
                                               sj_error *error);

/* Writes the aggregates of the sessions that have ended or whose delay has passed, as part of a
 * commit. For the other sessions, notes the first block that their rows do not count. With `all`,
 * every session is due. Writes about 1,500 call paths at most, or 64 sessions with `all`; ended
 * sessions do not count. Returns the errors of sj_store_write_or_quarantine. */
SJ_MUST_CHECK sj_status sj_store_write_aggregates(sj_store *store, bool all, sj_error *error);

/* Drops the cached state sessions[place]. */
void sj_store_forget_session(sj_store *store, size_t place);

/* Returns CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t sj_store_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* sj_store_has_stale is true if a session, cached or not, has unwritten aggregates and is not
 * quarantined. sj_store_write_some_aggregates writes the aggregates of up to 64 sessions in a
 * transaction of its own. sj_store_write_all_aggregates writes those of all sessions. No batch may
 * be open. Both return SJ_ENOMEM, SJ_EIO or SJ_EFULL. */
bool sj_store_has_stale(sj_store *store);
SJ_MUST_CHECK sj_status sj_store_write_some_aggregates(sj_store *store, sj_error *error);
SJ_MUST_CHECK sj_status sj_store_write_all_aggregates(sj_store *store, sj_error *error);

/* Moves the log into the file, as far as readers allow. `mode` is one of SQLITE_CHECKPOINT_*. */
void sj_store_checkpoint(sj_store *store, int mode);

/* Writes the deferred aggregates of the next session after `recovered_to`, and moves `recovered_to`
 * to it. Skips a session that receives frames: its aggregates are written when they are due.
 * Retries quarantined sessions, too, because this collector may be a newer version. Returns
 * SJ_ENOTFOUND if no session is left. */
SJ_MUST_CHECK sj_status sj_store_recover_next(sj_store *store, sj_error *error);

/* Loads the states of up to 64 sessions with deferred aggregates, because the process that stored
 * their blocks may be gone. Marks states that were not cached yet as borrowed. The caller drops
 * borrowed states once their aggregates are written, because their writer may still be running.
 * Returns SJ_ENOMEM, or an error of the database. Quarantines a session that cannot be loaded. */
SJ_MUST_CHECK sj_status sj_store_load_stale(sj_store *store, sj_error *error);

/* Writes the aggregates of some sessions that were deferred before the store was opened, in a
 * transaction of its own. Writes at least one session if there is any. Returns false if it
 * failed. */
bool sj_store_recover_some(sj_store *store, bool is_idle);

/* Writes the values of a block's calls (values.c). Returns SJ_ECORRUPT if a cost belongs to no
 * function, SJ_ENOMEM, or an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_add_values(sj_statements *sql, const sj_session_state *state,
                                            int64_t stream_id, const sj_block *block,
                                            sj_error *error);

/* Shortens and stores the outline of a block that a call graph has just replayed. Does nothing if
 * the block needs no outline. Returns an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_put_outline(sj_store *store, int64_t block_id, int64_t stream_id,
                                             const sj_block_header *header, size_t block_bytes,
                                             const sj_block_summary *summary, sj_error *error);

/* sj_store_unite_functions writes `*united`, a copy of `block` in which each function has one
 * number, for the aggregates. The copy borrows from `block` and the store until the next block.
 * sj_store_unite_frames and sj_store_unite_nodes replace the numbers of functions in place. The
 * session's modules must be loaded. All three return SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_store_unite_functions(sj_store *store, sj_session_state *state,
                                                 const sj_block *block, sj_block *united);
SJ_MUST_CHECK sj_status sj_store_unite_frames(sj_session_state *state, sj_stack_frame *frames,
                                              size_t count);
SJ_MUST_CHECK sj_status sj_store_unite_nodes(sj_session_state *state, sj_path_node *nodes,
                                             size_t count);

/* Writes the calls of the block that are open at the end of its stream. Returns SJ_ENOTFOUND if a
 * function belongs to no module that was sent. Other errors are those of sj_store_walk_block, and
 * of the database. */
SJ_MUST_CHECK sj_status sj_store_note_open_calls(sj_store *store, const sj_session_state *state,
                                                 int64_t stream_id, const sj_block *block,
                                                 sj_error *error);

/* Writes the calls of a profile that were open when their streams ended. Returns SJ_ENOTFOUND if a
 * function belongs to no module that was sent. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_add_open_calls(sj_store *store, sj_session_state *state,
                                                const sj_profile *profile, sj_error *error);

/* Walks a stored block, which was decoded whole, to the calls that are open at its end. The caller
 * releases `walk`, also after a failure. Returns SJ_ENOMEM, SJ_ENOTFOUND or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_store_walk_block(sj_store *store, int64_t stream_id,
                                            const sj_block *block, sj_stack_walk *walk);

/* Ends the open calls of all streams without an end, with the ending "open". Adds the number of
 * blocks stored for this to `*count`. `state` may be freed by the call. Returns SJ_ENOMEM or
 * SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_end_streams(sj_store *store, const sj_session_state *state,
                                             uint32_t *count, sj_error *error);

/* sj_store_note_timeline adds a block, which a call graph has just replayed, to the steps of its
 * stream. sj_store_note_timeline_paths writes the paths that the steps begin with, if they were not
 * known before. The paths are those of `summary` (timeline.c). Both return an error of the database
 * (statements.h). */
SJ_MUST_CHECK sj_status sj_store_note_timeline(sj_store *store, const sj_session_state *state,
                                               int64_t stream_id, const sj_block *block,
                                               const sj_block_summary *summary, sj_error *error);
SJ_MUST_CHECK sj_status sj_store_note_timeline_paths(sj_store *store, const sj_session_state *state,
                                                     int64_t stream_id, const sj_block *block,
                                                     const sj_block_summary *summary,
                                                     sj_error *error);

/* sj_store_stack_frames is the store's sj_stack_lookup. `context` is an sj_stack_context. */
typedef struct sj_stack_context {
    sj_store *store;
    sj_session_state *state; /* NULL: functions keep the device's numbers */
    int64_t stream_id;       /* 0: the stream is not stored yet */
} sj_stack_context;

/* Returns SJ_ENOTFOUND if a frame is missing, or SJ_ECORRUPT if a block cannot be decoded. Other
 * errors are those of sj_block_files_get, and of the database (statements.h). */
sj_status sj_store_stack_frames(void *context, uint32_t stream, uint32_t stack_reference,
                                uint32_t count, sj_stack_frame *frames);

/* The columns of a report of the monitor "zombies". Texts are borrowed. */
typedef struct sj_zombie_row {
    int64_t report_id;
    int64_t session_id;
    int64_t at_ns;
    const int64_t *process; /* NULL: no process */
    const char *kind;
} sj_zombie_row;

/* Stores a report of the monitor "zombies". `payload` is a JSON object. A key that is missing or of
 * another type counts as 0 or "". Returns SJ_ENOMEM, or an error of the database (statements.h). */
SJ_MUST_CHECK sj_status sj_store_zombie_add(sj_store *store, const sj_zombie_row *row,
                                            sj_slice payload, sj_error *error);

/* Adds bytes to two independent 64-bit hashes. The digest identifies the tables of honest planners.
 * It does not protect against forged tables, because a forger's session harms only its own
 * names. */
void sj_store_digest(uint64_t digest[2], const void *bytes, size_t size);

/* Makes a store on a connection with an open transaction. The store joins this transaction as its
 * batch, and neither commits it nor rolls it back. sj_store_return frees the store, and leaves the
 * connection to its owner. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_borrow(sqlite3 *database, sj_store **store, sj_error *error);
void sj_store_return(sj_store *store);

#endif
