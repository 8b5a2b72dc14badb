/* Verify: looks whether what a database holds can be read, and marks what cannot.
 *
 * Every stored block is decoded, compared with its row and replayed; aggregates are compared with
 * the blocks that they were made of: counts, and then all rows with their times, recomputed beside
 * the stored ones; SQLite looks at the file itself. A block that cannot be read
 * is marked (blocks.quarantined), so that questions leave it out and name it; one that was marked
 * and reads sound again is let free. Others may write to the file meanwhile: marks are transactions
 * of their own. */
#ifndef SJ_COLLECTOR_SERVER_STORE_VERIFY_H
#define SJ_COLLECTOR_SERVER_STORE_VERIFY_H

#include "collector-server/store/store.h"

typedef struct sj_finding {
    int64_t session_id; /* 0: the file itself */
    int64_t stream_id;  /* 0: none in particular */
    int64_t block_id;   /* 0: none in particular */
    int64_t calls;      /* that cannot be read; 0 for others than blocks */
    const char *what;   /* a sentence; lasts for the call */
} sj_finding;

typedef struct sj_verify_options {
    bool only_look; /* mark nothing */
    void (*report)(void *context, const sj_finding *finding);
    void *context;
} sj_verify_options;

typedef struct sj_verified {
    uint64_t sessions, blocks;
    uint64_t bad_blocks;
    uint64_t freed_blocks; /* were marked, and can be read */
    uint64_t other;        /* findings that are no blocks */
    uint64_t missing;      /* of them, sessions whose calls or blocks did not all arrive */
} sj_verified;

/* sj_store_verify looks at everything; the store holds no batch. SJ_OK whatever was found; else it
 * could not look on: SJ_EIO, SJ_ENOMEM, SJ_EFULL. Blocking. */
SJ_MUST_CHECK sj_status sj_store_verify(sj_store *store, const sj_verify_options *options,
                                        sj_verified *verified, sj_error *error);

/* sj_store_rebuild rebuilds all aggregates of a session  from its blocks, in one transaction: call
 * paths, functions, edges, streams, slow calls and timeline, also those that its collector did not
 * make yet. SJ_ENOTFOUND; SJ_EUNSUPPORTED: it has profiles, which came as aggregates. */
SJ_MUST_CHECK sj_status sj_store_rebuild(sj_store *store, int64_t session_id, sj_error *error);

/* sj_store_rebuild_in_batch is sj_store_rebuild within a transaction of the caller, who ends it. */
SJ_MUST_CHECK sj_status sj_store_rebuild_in_batch(sj_store *store, int64_t session_id,
                                                  sj_error *error);

#endif
