/* The store: one SQLite database (`lab.db`, or the file of `sojourn record`) with one writer.
 *
 * Settings: 16 KiB pages (smaller in a packed file, page_size.h), WAL, synchronous=FULL,
 * incremental vacuum from creation. The transaction that stores a frame is the one that its
 * acknowledgement waits for. It holds the block, its dedup key, and the changed aggregates or a
 * note to recompute them from the block (deferred_aggregates.c). Frames may come in any order and
 * more than once.
 *
 * A batch is: begin, any number of apply, then commit or rollback. While one of these calls blocks,
 * no sender gets a reply. Single-threaded: the ingest's writer thread owns the store. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORE_H
#define SJ_COLLECTOR_SERVER_STORE_STORE_H

#include "collector-server/store/device_quota.h"
#include "collector-server/store/sender.h"
#include "proto/base/error.h"
#include "proto/wire/frame.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_store sj_store;

/* default of aggregates_delay_ms for collectors: a live view lags one second behind */
enum { SJ_AGGREGATES_DELAY_MS = 1000 };

typedef struct sj_store_options {
    const char *path;       /* path of the file */
    bool create;            /* create it if it does not exist */
    uint64_t max_bytes;     /* size at which blocks are refused with SJ_EFULL; 0: no limit */
    uint64_t reserve_bytes; /* free disk space below which blocks are refused with SJ_EFULL */
    /* Memory for call graphs; ten times as much for sessions that send large blocks. The aggregates
     * of further sessions are computed from their stored blocks. 0: 24 MB. */
    size_t callgraph_memory_bytes;
    /* Maximum number of call paths of a session with aggregates. 0: SJ_MOST_PATHS. */
    uint32_t most_paths;
    /* Number of call paths beyond which the rarest are folded, down to half of it. 0:
     * SJ_PATH_BUDGET. */
    uint32_t path_budget;
    /* how long aggregates may lag behind their blocks; 0: they never lag */
    uint32_t aggregates_delay_ms;
    /* seconds without a frame after which sessions end as "lost contact"; 0: never */
    uint32_t lost_after_s;
    sj_quota quota; /* the quota of a device that has none of its own, device_quota.h */
} sj_store_options;

typedef struct sj_store_counters {
    uint64_t calls;   /* calls in the blocks stored since the store was opened */
    uint64_t foreign; /* frames refused because the session belongs to another sender */
} sj_store_counters;

/* Opens the file. Aggregates that a killed collector had deferred are recomputed at once if
 * `aggregates_delay_ms` is 0. Otherwise sj_store_recover and sj_store_maintain recompute them
 * later. For a session that receives frames, they are recomputed when its aggregates are next
 * written. So a collector that restarts with a thousand active sessions accepts frames
 * immediately. Returns SJ_ENOMEM, SJ_EIO, or an error of sj_database_open. */
SJ_MUST_CHECK sj_status sj_store_open(const sj_store_options *options, sj_store **store,
                                      sj_error *error);
void sj_store_close(sj_store *store);
SJ_MUST_CHECK sj_status sj_store_begin(sj_store *store, sj_error *error);

/* Stores one frame of a type that frame_handlers.h lists. A `sender` of NULL is this process.
 * Sets `*duplicate`, and returns SJ_OK, if the frame was stored before.
 *
 * Refuses a frame that is corrupt, contradicts a stored frame, refers to something unknown or
 * belongs to another sender. It then returns SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_EEXIST,
 * SJ_EUNSUPPORTED, SJ_ENOTFOUND or SJ_EINVAL. A refusal changes nothing except the record of
 * refusals, and the batch continues. Returns SJ_EQUOTA if the sender's quota is used up for
 * today; the sender must keep the frame, and the batch continues. If sj_store_ends_batch is true
 * for the result, the caller rolls back. */
SJ_MUST_CHECK sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame,
                                       const sj_sender *sender, bool *duplicate, sj_error *error);

/* Makes the batch durable. Only then may its frames be acknowledged. After an error, the batch is
 * closed, and its frames must not be acknowledged: it was rolled back, or the file was replaced. */
SJ_MUST_CHECK sj_status sj_store_commit(sj_store *store, sj_error *error);
void sj_store_rollback(sj_store *store);

/* True if a status of begin, apply or commit refuses the whole batch. */
bool sj_store_ends_batch(sj_status status);

/* Returns the error that sj_store_begin or a block would return now, or SJ_OK if none is known.
 * Call it between batches. */
SJ_MUST_CHECK sj_status sj_store_check(sj_store *store, sj_error *error);
void sj_store_get_counters(const sj_store *store, sj_store_counters *counters);

/* Ends silent sessions (lost_after_s), and writes some of the deferred aggregates. If no aggregates
 * are left, checkpoints the WAL and vacuums a little. Call it when idle, and again while it returns
 * true. Does nothing in a batch. */
bool sj_store_maintain(sj_store *store);

/* Writes some of the aggregates that were deferred before this store was opened, if there are any.
 * Uses at most a tenth of the time for that. Also ends silent sessions (lost_after_s). Call it
 * between batches. */
void sj_store_recover(sj_store *store);

/* Returns functions.symbol_key of a function with a name. The key is equal for functions of the
 * same name in modules of the same file name, in any build. Thread-safe. */
int64_t sj_store_symbol_key(const char *module_path, const char *name);

/* sj_store_code_key and sj_store_address_key return functions.symbol_key of a function without a
 * name. The code key is equal for functions with the same code in modules of the same file name.
 * The address key identifies one function of one build. Thread-safe. */
int64_t sj_store_code_key(const char *module_path, uint64_t fingerprint);
int64_t sj_store_address_key(sj_slice build_id, uint64_t offset);

/* Writes the aggregates that a killed collector had deferred, so that queries of a file left by a
 * crash agree with its blocks. Does not change the file if any process wrote to it in the last
 * seconds. Returns SJ_OK if there is nothing to do, else the errors of sj_store_open. */
SJ_MUST_CHECK sj_status sj_store_recover_file(const char *path, sqlite3 *reader, sj_error *error);

/* The initial value of modules.functions_digest. sj_store_digest_function adds a function to it, in
 * the order of their ids. `symbol` is the name given by the device, or "". The digest identifies
 * the tables of honest planners. It does not protect against a device that computes another table
 * with the same digest. Thread-safe. */
#define SJ_FUNCTIONS_DIGEST_BEGIN                                                                  \
    {                                                                                              \
        UINT64_C(0xcbf29ce484222325), 1                                                            \
    }
void sj_store_digest_function(uint64_t digest[2], uint64_t offset, uint32_t size_bytes,
                              const char *symbol);

#endif
