/* Checks whether the contents of a database can be read, and marks what cannot.
 *
 * Every stored block is decoded, compared with its row and replayed. Counts in aggregates are
 * compared with the blocks. If SQLite finds no fault in the file, all aggregate rows, with their
 * times, are recomputed and compared, too.
 *
 * A block that cannot be read is marked (blocks.quarantined), so that queries skip and name it. A
 * marked block that reads well again is unmarked. Other processes may write to the file meanwhile:
 * each mark is a transaction of its own. */
#ifndef SJ_COLLECTOR_SERVER_STORE_VERIFY_H
#define SJ_COLLECTOR_SERVER_STORE_VERIFY_H

#include "collector-server/store/store.h"

typedef struct sj_finding {
    int64_t session_id; /* 0: the file itself */
    int64_t stream_id;  /* 0: no particular stream */
    int64_t block_id;   /* 0: no particular block */
    int64_t calls;      /* calls of a block that cannot be read; else 0 */
    const char *what;   /* a sentence, valid during the call */
} sj_finding;

typedef struct sj_verify_options {
    bool check_only; /* mark nothing */
    void (*report)(void *context, const sj_finding *finding);
    void *context;
} sj_verify_options;

typedef struct sj_verified {
    uint64_t sessions, blocks;
    uint64_t bad_blocks;
    uint64_t freed_blocks; /* blocks that were marked and can be read again */
    uint64_t other;        /* findings about other things than blocks */
    /* Part of `other`: sessions whose calls or blocks did not all arrive. */
    uint64_t missing;
} sj_verified;

/* Checks everything. The store must not hold a batch. Returns SJ_OK whatever was found. Returns
 * SJ_EIO, SJ_ENOMEM or SJ_EFULL if the check could not continue. Blocks. */
SJ_MUST_CHECK sj_status sj_store_verify(sj_store *store, const sj_verify_options *options,
                                        sj_verified *verified, sj_error *error);

/* Rebuilds all aggregates of a session from its blocks, in one transaction: call paths,
 * functions, edges, streams, slow calls and timeline. Includes aggregates that its collector did
 * not write yet. Returns SJ_ENOTFOUND if the session does not exist. Returns SJ_EUNSUPPORTED if
 * the session has profiles, which came as aggregates. Returns SJ_EIO, SJ_ENOMEM or SJ_EFULL. */
SJ_MUST_CHECK sj_status sj_store_rebuild(sj_store *store, int64_t session_id, sj_error *error);

/* Does what sj_store_rebuild does, but in a transaction that the caller began and ends. Returns the
 * same errors. */
SJ_MUST_CHECK sj_status sj_store_rebuild_in_batch(sj_store *store, int64_t session_id,
                                                  sj_error *error);

/* Does what sj_store_rebuild does, on the caller's connection and in its open transaction. Call it
 * after the session's blocks were changed by SQL. If the session has ended, also ends its streams
 * as the end of the session does. If an error is returned, roll the transaction back. Blocks. */
SJ_MUST_CHECK sj_status sj_store_rebuild_changed(sqlite3 *database, int64_t session_id,
                                                 sj_error *error);

#endif
