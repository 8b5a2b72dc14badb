/* The store: one SQLite database (`lab.db`, or the file of `sojourn record`), one writer.
 *
 * 16 KiB pages (smaller in a packed one, page_size.h), WAL, synchronous=FULL, incremental vacuum
 * from creation. What one frame says is written in the transaction that its acknowledgement waits
 * for: the block, its dedup key, and the aggregates that it changes or a note that they have to be
 * recomputed from it (deferred_aggregates.c). Frames may come in any order and more than once.
 *
 * A batch: sj_store_begin, any number of sj_store_apply, sj_store_commit; then, and only then, the
 * frames may be acknowledged. Single-threaded: the ingest's writer thread owns the store. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORE_H
#define SJ_COLLECTOR_SERVER_STORE_STORE_H

#include "collector-server/store/sender.h"
#include "proto/base/error.h"
#include "proto/wire/frame.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_store sj_store;

enum { SJ_AGGREGATES_DELAY_MS = 1000 }; /* what collectors use: a live view is a second behind */

typedef struct sj_store_options {
    const char *path;
    bool create;                   /* create the file when it is not there */
    uint64_t max_bytes;            /* refuse blocks beyond (SJ_EFULL); 0: no limit */
    uint64_t reserve_bytes;        /* free disk space to leave; SJ_EFULL below */
    size_t callgraph_memory_bytes; /* for call graphs kept in memory (ten times that for sessions
                                      that send large blocks); sessions beyond are summed from
                                      their stored blocks; 0: 24 MB */
    uint32_t most_paths;           /* of a session whose aggregates are made; 0: SJ_MOST_PATHS */
    uint32_t path_budget;          /* beyond it the rarest are folded, to half of it; 0:
                                      SJ_PATH_BUDGET */
    uint32_t aggregates_delay_ms; /* aggregates may lag behind their blocks for so long; 0: never */
} sj_store_options;

/* sj_store_open opens the file. Aggregates that a killed collector had put off are recomputed at
 * once when `aggregates_delay_ms` is 0; else later, by sj_store_recover and sj_store_maintain, and
 * for a session whose frames come by its next aggregates: who restarts with a thousand busy
 * sessions can take frames at once. SJ_ENOMEM, SJ_EIO, SJ_ENOTFOUND, SJ_EVERSION, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_store_open(const sj_store_options *options, sj_store **store,
                                      sj_error *error);
void sj_store_close(sj_store *store);

SJ_MUST_CHECK sj_status sj_store_begin(sj_store *store, sj_error *error);

/* sj_store_apply stores one frame (any type up to SJ_FRAME_UNHOOKED) of a sender (NULL: of this
 * process). `*duplicate` is set when it was stored before; that is success. A frame that is
 * corrupt, contradicts a stored one, refers to nothing known or belongs to another sender returns
 * SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_EEXIST, SJ_EUNSUPPORTED, SJ_ENOTFOUND or SJ_EINVAL and
 * changes nothing but the tables of what was refused; the batch goes on. Anything else (SJ_EFULL,
 * SJ_EIO, SJ_ENOMEM): roll back. */
SJ_MUST_CHECK sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame,
                                       const sj_sender *sender, bool *duplicate, sj_error *error);

/* sj_store_foreign_frames counts the frames that were for another sender's session. */
uint64_t sj_store_foreign_frames(const sj_store *store);

SJ_MUST_CHECK sj_status sj_store_commit(sj_store *store, sj_error *error);
void sj_store_rollback(sj_store *store);

/* sj_store_stored_calls counts the calls of the blocks stored since the store was opened. */
uint64_t sj_store_stored_calls(const sj_store *store);

/* sj_store_symbol_key is functions.symbol_key: equal for functions of the same name in modules of
 * the same file name, whatever their build. Any thread. */
int64_t sj_store_symbol_key(const char *module_path, const char *name);

/* sj_store_maintain writes some of the aggregates that were put off; when there are none it
 * checkpoints the WAL and vacuums a little. Call when idle, again as long as it returns true. */
bool sj_store_maintain(sj_store *store);

/* sj_store_recover writes some of the aggregates that were put off before this store was opened;
 * does nothing when there are none, and takes a tenth of the time at most. Call between batches. */
void sj_store_recover(sj_store *store);

/* sj_store_recover_file writes the aggregates that a collector which is gone had put off, so that a
 * file left by a crash reads as what its blocks say. A file that somebody has written to in the
 * last seconds is left alone. SJ_OK when there is nothing to do; else as sj_store_open. */
SJ_MUST_CHECK sj_status sj_store_recover_file(const char *path, sqlite3 *reader, sj_error *error);

/* sj_database_open_reader opens a read-only connection with Sojourn's functions and virtual tables
 * registered (query/). The caller closes it with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_open_reader(const char *path, sqlite3 **database,
                                                sj_error *error);

#endif
