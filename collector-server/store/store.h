/* The store: one SQLite database (`lab.db`, or the file of `sojourn record`), one writer.
 *
 * 16 KiB pages, WAL, synchronous=FULL, incremental vacuum from creation. What one frame says is
 * written in the transaction that its acknowledgement waits for: the block, its dedup key, and the
 * sums that it changes or a note that they have to be made good from it (late_sums.c). Frames may
 * come in any order and more than once.
 *
 * A batch: sj_store_begin, any number of sj_store_apply, sj_store_commit; then, and only then, the
 * frames may be acknowledged. Single-threaded: the ingest's writer thread owns the store. */
#ifndef SJ_COLLECTOR_STORE_STORE_H
#define SJ_COLLECTOR_STORE_STORE_H

#include "agent/control/error.h"
#include "proto/frame.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_store sj_store;

enum { SJ_SUMS_DELAY_MS = 1000 }; /* what collectors use: a live view is a second behind */

typedef struct sj_store_options {
    const char *path;
    bool create;                   /* create the file when it is not there */
    uint64_t max_bytes;            /* refuse blocks beyond (SJ_EFULL); 0: no limit */
    uint64_t reserve_bytes;        /* free disk space to leave; SJ_EFULL below */
    size_t callgraph_memory_bytes; /* for call graphs kept in memory (ten times that for sessions
                                      that send large blocks); sessions beyond are summed from
                                      their stored blocks; 0: 24 MB */
    uint32_t most_paths;           /* of a session whose sums are made; 0: SJ_MOST_PATHS */
    uint32_t sums_delay_ms;        /* sums may lag behind their blocks for so long; 0: never */
} sj_store_options;

/* sj_store_open opens the file. Sums that a killed collector had put off are made good at once when
 * `sums_delay_ms` is 0; else later, by sj_store_mend and sj_store_maintain, and for a session whose
 * frames come by its next sums: who restarts with a thousand busy sessions can take frames at once.
 * SJ_ENOMEM, SJ_EIO, SJ_ENOTFOUND, SJ_EVERSION, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_store_open(const sj_store_options *options, sj_store **store,
                                      sj_error *error);
void sj_store_close(sj_store *store);

SJ_MUST_CHECK sj_status sj_store_begin(sj_store *store, sj_error *error);

/* sj_store_apply stores one frame (any type up to SJ_FRAME_UNHOOKED). `*duplicate` is set when it
 * was stored before; that is success. A frame that is corrupt, overlaps a stored one or refers to
 * nothing known returns SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_EEXIST, SJ_EUNSUPPORTED or
 * SJ_ENOTFOUND and changes nothing; the batch goes on. Anything else (SJ_EFULL, SJ_EIO, SJ_ENOMEM):
 * roll back. */
SJ_MUST_CHECK sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame, bool *duplicate,
                                       sj_error *error);

SJ_MUST_CHECK sj_status sj_store_commit(sj_store *store, sj_error *error);
void sj_store_rollback(sj_store *store);

/* sj_store_stored_calls counts the calls of the blocks stored since the store was opened. */
uint64_t sj_store_stored_calls(const sj_store *store);

/* sj_store_symbol_key is functions.symbol_key: equal for functions of the same name in modules of
 * the same file name, whatever their build. Any thread. */
int64_t sj_store_symbol_key(const char *module_path, const char *name);

/* sj_store_maintain writes some of the sums that were put off; when there are none it checkpoints
 * the WAL and vacuums a little. Call when idle, again as long as it returns true. */
bool sj_store_maintain(sj_store *store);

/* sj_store_mend writes some of the sums that were put off before this store was opened; does
 * nothing when there are none, and takes a tenth of the time at most. Call between batches. */
void sj_store_mend(sj_store *store);

/* sj_store_settle writes the sums that a collector which is gone had put off, so that a file left
 * by a crash reads as what its blocks say. A file that somebody has written to in the last seconds
 * is left alone. SJ_OK when there is nothing to do; else as sj_store_open. */
SJ_MUST_CHECK sj_status sj_store_settle(const char *path, sqlite3 *reader, sj_error *error);

/* sj_database_open_reader opens a read-only connection with Sojourn's functions and virtual tables
 * registered (query/). The caller closes it with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_open_reader(const char *path, sqlite3 **database,
                                                sj_error *error);

#endif
