/* The store's parts know each other by this; nobody else includes it. */
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

struct sj_sink {
    sqlite3 *database;
    sj_statements sql;
    char *path;
    uint64_t max_bytes;
    uint64_t reserve_bytes;
    size_t callgraph_memory_bytes;
    uint32_t most_paths;
    uint32_t path_budget;
    size_t held_bytes; /* of all sessions, about */
    bool in_batch;
    uint64_t batch;            /* number of the one that was begun last */
    bool full;                 /* found at the begin of the batch: no more blocks */
    const sj_sender *sender;   /* of the frame at hand; NULL: none is */
    int64_t foreign_session;   /* session_id, when the frame is refused because it is not its */
    sj_session_state *touched; /* the session that the frame at hand was for last; NULL: none */
    uint64_t lost_after_ms;    /* sessions that are silent for so long have ended; 0: none has */
    uint64_t next_silence_look_ns; /* MONOTONIC; the first is `lost_after_ms` after the opening */
    uint64_t use_count;
    uint64_t applied_blocks;
    sj_session_state **sessions; /* cached, in no order */
    size_t session_count, session_capacity;
    sj_session_state *buckets[SJ_STORE_BUCKETS]; /* the same by id */
    sj_block_files *files, *stack_files;         /* a stack is read while its block is in use */
    sj_block_decoder *decoder;
    sj_block_decoder *stack_decoder;
    uint32_t *united_functions; /* of the block at hand: united_functions.c */
    size_t united_function_capacity;
    sj_stack_frame *united_frames;
    size_t united_frame_capacity;
    sj_callgraph *scratch_graph; /* measures blocks of sessions without a graph */
    uint8_t *scratch;
    size_t scratch_capacity;
    sj_sink_counters counters; /* with the calls of the batch */
    int wal_pages;             /* at the last commit */
    uint64_t wal_inode;        /* of the log, as found at the first commit; 0: not yet */
    sj_file_watch watch;
    uint64_t aggregates_delay_ns;
    bool has_leftovers;        /* others may have put off aggregates before this store was opened */
    int64_t recovered_to;      /* session_id up to which they were looked for */
    uint64_t next_recovery_ns; /* MONOTONIC */
    struct {
        uint8_t *bytes; /* bump memory for unpacked headers, reused from frame to frame */
        size_t used;
    } arena;
};

/* sj_store_session finds a session by the 16 bytes of a message. SJ_ENOTFOUND says which;
 * SJ_EINVAL: it is not the sender's. */
SJ_MUST_CHECK sj_status sj_store_session(sj_store *store, const uint8_t *id, size_t id_bytes,
                                         sj_session_state **state, sj_error *error);

/* sj_store_see_session returns whether the row of a session that memory holds is still there, asked
 * once a batch. Others remove sessions between batches, and new ones get the ids of their rows:
 * what memory knows is of use in a batch only once this said so. SJ_ENOTFOUND: it was removed. */
SJ_MUST_CHECK sj_status sj_store_see_session(sj_store *store, sj_session_state *state,
                                             sj_error *error);

/* sj_store_explain returns `status`. A failure without a sentence gets one: what lacks memory says
 * so by its status alone. */
SJ_MUST_CHECK sj_status sj_store_explain(sj_status status, sj_error *error);

/* sj_store_check_full returns SJ_EFULL when the store was full at the last begin. */
SJ_MUST_CHECK sj_status sj_store_check_full(const sj_store *store, sj_error *error);

/* sj_store_note_receipt notes in the session's row that a frame of it has come. In a batch. */
SJ_MUST_CHECK sj_status sj_store_note_receipt(sj_store *store, sj_session_state *state,
                                              sj_error *error);

/* sj_store_end_silent ends sessions of which no frame has come for `lost_after_ms` as "lost
 * contact", in a transaction of its own; looks once a minute at most. Does nothing in a batch. */
SJ_MUST_CHECK sj_status sj_store_end_silent(sj_store *store, sj_error *error);

/* sj_store_realtime_ns returns CLOCK_REALTIME. */
int64_t sj_store_realtime_ns(void);

/* sj_store_is_own_device returns whether the frame at hand comes from the device that it names. */
bool sj_store_is_own_device(const sj_store *store, const uint8_t *uuid, size_t uuid_bytes);

/* sj_store_forget_sessions drops what memory holds of all sessions, or of guests (aggregates are
 * not written). */
void sj_store_forget_sessions(sj_store *store, bool only_borrowed);

/* sj_store_may_hold_graph returns whether a session has a call graph in memory or may get one. */
bool sj_store_may_hold_graph(sj_store *store, const sj_session_state *state);

/* sj_store_forget_graph drops a session's graph and totals; they are rebuilt from its blocks. */
void sj_store_forget_graph(sj_store *store, sj_session_state *state);

/* sj_store_holds_too_much returns whether a graph that is held has no room. */
bool sj_store_holds_too_much(const sj_store *store, const sj_session_state *state);

/* sj_store_trim_sessions forgets graphs, and then sessions, that were used longest ago until the
 * rest fits. The session used last stays. Within a batch, as one alone may bring in more sessions
 * than there is memory for. */
SJ_MUST_CHECK sj_status sj_store_trim_sessions(sj_store *store, sj_error *error);

/* sj_store_scratch gives at least `size` bytes, valid until the next call. */
SJ_MUST_CHECK sj_status sj_store_scratch(sj_store *store, size_t size, uint8_t **bytes);

/* sj_store_allocator is the arena as protobuf-c wants it; a message that needs more memory than it
 * has is refused. Everything in it ends with the next frame. */
ProtobufCAllocator sj_store_allocator(sj_store *store);

/* sj_store_compare_block returns whether a block says the same of its events as the stored one that
 * has all of them. SJ_OK: it does; SJ_EEXIST: it does not; else why that is unknown. Uses both
 * decoders. */
SJ_MUST_CHECK sj_status sj_store_compare_block(sj_store *store, int64_t stored_block,
                                               sj_slice bytes, sj_error *error);

/* sj_store_quarantine keeps a block aside whose events contradict stored ones; with too many of
 * them it keeps nothing. */
SJ_MUST_CHECK sj_status sj_store_quarantine(sj_store *store, const sj_session_state *state,
                                            const sj_block_header *header, sj_slice bytes,
                                            const char *reason, sj_error *error);

/* sj_store_invalidate drops what memory holds of a session's aggregates, which is no longer so: its
 * rows and its blocks hold all of it. */
void sj_store_invalidate(sj_session_state *state);

/* sj_store_rebuild_aggregates makes the state of a session that is behind whole: read anew, with
 * the blocks replayed that its rows do not count. Pointers to its streams end. SJ_ENOTFOUND: the
 * session has been removed. SJ_ECORRUPT, SJ_EVERSION: its rows cannot be read back. SJ_ENOMEM,
 * SJ_EIO. It stays behind when it fails. */
SJ_MUST_CHECK sj_status sj_store_rebuild_aggregates(sj_store *store, sj_session_state *state,
                                                    sj_error *error);

/* sj_store_fold_rare_paths folds the rarest call paths of a session that has more in memory than
 * its budget, between two blocks. Then `is_renumbered` is set, and the caller writes its aggregates
 * in the same transaction (path_folding.c). SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_fold_rare_paths(sj_store *store, sj_session_state *state,
                                                 sj_error *error);

/* sj_store_is_own_fault returns whether a failure is that of the session at hand, so that others
 * can go on without it, and not one of disk or memory. False for SJ_OK. */
static inline bool sj_store_is_own_fault(sj_status status)
{
    return status != SJ_OK && status != SJ_EFULL && status != SJ_EIO && status != SJ_ENOMEM &&
           status != SJ_EAGAIN;
}

/* sj_store_write_or_quarantine writes the aggregates of one session now, or, when that is
 * impossible, sets it apart with the reason (sessions.quarantine_reason): its blocks go on being
 * stored, and its aggregates are tried again later. Fails only with what is not the session's
 * fault. In a batch. */
SJ_MUST_CHECK sj_status sj_store_write_or_quarantine(sj_store *store, sj_session_state *state,
                                                     sj_error *error);

/* sj_store_write_session writes the aggregates of one session now. */
SJ_MUST_CHECK sj_status sj_store_write_session(sj_store *store, sj_session_state *state,
                                               sj_error *error);

/* sj_store_write_aggregates writes, as part of a commit, the aggregates of the sessions that must
 * be or have been due for longest, and notes of the others which block the rows do not count. With
 * `all` every session is due; as many are written as one commit should write. */
SJ_MUST_CHECK sj_status sj_store_write_aggregates(sj_store *store, bool all, sj_error *error);

/* sj_store_forget_session drops what memory holds of sessions[place]. */
void sj_store_forget_session(sj_store *store, size_t place);

/* sj_store_now_ns reads CLOCK_MONOTONIC. */
static inline uint64_t sj_store_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* sj_store_has_stale returns whether any session, in memory or not, has aggregates to be written.
 * sj_store_write_some_aggregates writes those of up to 64 sessions in a transaction of its own,
 * sj_store_write_all_aggregates all of them. No batch may be open. SJ_ENOMEM, SJ_EIO, SJ_EFULL. */
bool sj_store_has_stale(sj_store *store);
SJ_MUST_CHECK sj_status sj_store_write_some_aggregates(sj_store *store, sj_error *error);
SJ_MUST_CHECK sj_status sj_store_write_all_aggregates(sj_store *store, sj_error *error);

/* sj_store_checkpoint moves the log into the file (SQLITE_CHECKPOINT_*), as far as readers allow.
 */
void sj_store_checkpoint(sj_store *store, int mode);

/* sj_store_recover_next writes the aggregates of the next session behind `recovered_to`, also of a
 * quarantined one: this collector may be a newer one. SJ_ENOTFOUND: none is left. */
SJ_MUST_CHECK sj_status sj_store_recover_next(sj_store *store, sj_error *error);

/* sj_store_load_stale brings the state of sessions with aggregates put off into memory, as the
 * process that wrote their blocks may be gone. Those that were not there already are guests:
 * their writer may still be there, too, so they must be dropped once their aggregates are
 * written. */
SJ_MUST_CHECK sj_status sj_store_load_stale(sj_store *store, sj_error *error);

/* sj_store_recover_some writes the aggregates of some sessions that were put off before the store
 * was opened, in a transaction of its own; false when it could not. At least one of them, if there
 * is any. */
bool sj_store_recover_some(sj_store *store, bool is_idle);

/* sj_store_add_values writes the values of a block's calls (values.c). */
SJ_MUST_CHECK sj_status sj_store_add_values(sj_statements *sql, const sj_session_state *state,
                                            int64_t stream_id, const sj_block *block,
                                            sj_error *error);

/* sj_store_put_outline stores the outline of a block that a call graph has just replayed, when the
 * block is to have one; it is shortened. */
SJ_MUST_CHECK sj_status sj_store_put_outline(sj_store *store, int64_t block_id, int64_t stream_id,
                                             const sj_block_header *header, size_t block_bytes,
                                             const sj_block_summary *summary, sj_error *error);

/* sj_store_unite_functions gives `*united`, a block whose functions have one number each, for the
 * aggregates; it borrows from `block` and the store until the next block. sj_store_unite_frames and
 * sj_store_unite_nodes change such numbers in place. All need the session's modules. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_store_unite_functions(sj_store *store, sj_session_state *state,
                                                 const sj_block *block, sj_block *united);
SJ_MUST_CHECK sj_status sj_store_unite_frames(sj_session_state *state, sj_stack_frame *frames,
                                              size_t count);
SJ_MUST_CHECK sj_status sj_store_unite_nodes(sj_session_state *state, sj_path_node *nodes,
                                             size_t count);

/* sj_store_note_open_calls writes the calls of the block that are open at the end of its stream. */
SJ_MUST_CHECK sj_status sj_store_note_open_calls(sj_store *store, const sj_session_state *state,
                                                 int64_t stream_id, const sj_block *block,
                                                 sj_error *error);

/* sj_store_add_open_calls writes the calls of a profile that were open when their streams ended.
 * SJ_ENOTFOUND: a function is in no module that was sent. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_add_open_calls(sj_store *store, sj_session_state *state,
                                                const sj_profile *profile, sj_error *error);

/* sj_store_walk_block walks a stored block, decoded whole, to the calls that are open at its end.
 * Release `walk` after a failure, too. SJ_ENOMEM, SJ_ENOTFOUND, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_store_walk_block(sj_store *store, int64_t stream_id,
                                            const sj_block *block, sj_stack_walk *walk);

/* sj_store_end_streams ends the open calls of all streams that have no end, as open, and adds to
 * `*count` how many blocks it stored for that. `state` may be gone behind it. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_store_end_streams(sj_store *store, const sj_session_state *state,
                                             uint32_t *count, sj_error *error);

/* sj_store_note_timeline adds what a block says, which a call graph has just replayed, to the steps
 * of its stream; sj_store_note_timeline_paths gives the paths that steps begin with, when that was
 * not known before. Paths are those of `summary` (timeline.c). */
SJ_MUST_CHECK sj_status sj_store_note_timeline(sj_store *store, const sj_session_state *state,
                                               int64_t stream_id, const sj_block *block,
                                               const sj_block_summary *summary, sj_error *error);

SJ_MUST_CHECK sj_status sj_store_note_timeline_paths(sj_store *store, const sj_session_state *state,
                                                     int64_t stream_id, const sj_block *block,
                                                     const sj_block_summary *summary,
                                                     sj_error *error);

/* sj_store_stack_frames is the sj_stack_lookup of the store; `context` is an sj_stack_context. */
typedef struct sj_stack_context {
    sj_store *store;
    sj_session_state *state; /* NULL: functions keep the numbers that the device gave */
    int64_t stream_id;       /* 0: the stream is not stored yet */
} sj_stack_context;

sj_status sj_store_stack_frames(void *context, uint32_t stream, uint32_t stack_reference,
                                uint32_t count, sj_stack_frame *frames);

/* Where a report of the monitor "zombies" belongs; texts are borrowed. */
typedef struct sj_zombie_row {
    int64_t report_id;
    int64_t session_id;
    int64_t at_ns;
    const int64_t *process; /* NULL: none */
    const char *kind;
} sj_zombie_row;

/* sj_store_zombie_add stores what such a report says, whose payload is a JSON object. A key that is
 * missing or of another type counts as 0 or "". */
SJ_MUST_CHECK sj_status sj_store_zombie_add(sj_store *store, const sj_zombie_row *row,
                                            sj_slice payload, sj_error *error);

/* sj_store_digest adds bytes to two independent 64-bit hashes: an identity among honest planners'
 * tables, not a defence against forged ones (a session only ever harms its own names). */
void sj_store_digest(uint64_t digest[2], const void *bytes, size_t size);

#endif
