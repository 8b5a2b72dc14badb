/* The store: one SQLite database (`lab.db`, or the file of `sojourn record`), one writer.
 *
 * 16 KiB pages (smaller in a packed one, page_size.h), WAL, synchronous=FULL, incremental vacuum
 * from creation. What one frame says is written in the transaction that its acknowledgement waits
 * for: the block, its dedup key, and the aggregates that it changes or a note that they have to be
 * recomputed from it (deferred_aggregates.c). Frames may come in any order and more than once.
 *
 * It is the sink (sink.h) of record. Single-threaded: the ingest's writer thread owns the store. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORE_H
#define SJ_COLLECTOR_SERVER_STORE_STORE_H

#include "collector-server/store/sink.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef sj_sink sj_store;

enum { SJ_AGGREGATES_DELAY_MS = 1000 }; /* what collectors use: a live view is a second behind */

extern const sj_sink_kind sj_sqlite_sink;

/* The functions of sj_sqlite_sink, for those who have no other; what they do is said in sink.h.
 *
 * sj_store_open opens the file. Aggregates that a killed collector had put off are recomputed at
 * once when `aggregates_delay_ms` is 0; else later, by sj_store_recover and sj_store_maintain, and
 * for a session whose frames come by its next aggregates: who restarts with a thousand busy
 * sessions can take frames at once. */
SJ_MUST_CHECK sj_status sj_store_open(const sj_sink_options *options, sj_store **store,
                                      sj_error *error);
void sj_store_close(sj_store *store);
SJ_MUST_CHECK sj_status sj_store_begin(sj_store *store, sj_error *error);
SJ_MUST_CHECK sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame,
                                       const sj_sender *sender, bool *duplicate, sj_error *error);
SJ_MUST_CHECK sj_status sj_store_commit(sj_store *store, sj_error *error);
void sj_store_rollback(sj_store *store);
SJ_MUST_CHECK sj_status sj_store_check(sj_store *store, sj_error *error);
void sj_store_get_counters(const sj_store *store, sj_sink_counters *counters);

/* sj_store_maintain writes some of the aggregates that were put off; when there are none it
 * checkpoints the WAL and vacuums a little. */
bool sj_store_maintain(sj_store *store);

/* sj_store_recover writes some of the aggregates that were put off before this store was opened;
 * does nothing when there are none, and takes a tenth of the time at most. */
void sj_store_recover(sj_store *store);

/* sj_store_symbol_key is functions.symbol_key of a function with a name: equal for functions of the
 * same name in modules of the same file name, whatever their build. Any thread. */
int64_t sj_store_symbol_key(const char *module_path, const char *name);

/* sj_store_code_key and sj_store_address_key are functions.symbol_key of functions without a name:
 * equal for functions of the same code in modules of the same file name, or for one function of one
 * build. Any thread. */
int64_t sj_store_code_key(const char *module_path, uint64_t fingerprint);
int64_t sj_store_address_key(sj_slice build_id, uint64_t offset);

/* sj_store_recover_file writes the aggregates that a collector which is gone had put off, so that a
 * file left by a crash reads as what its blocks say. A file that somebody has written to in the
 * last seconds is left alone. SJ_OK when there is nothing to do; else as sj_store_open. */
SJ_MUST_CHECK sj_status sj_store_recover_file(const char *path, sqlite3 *reader, sj_error *error);

/* What modules.functions_digest begins with; sj_store_digest_function adds a function to it, in
 * order of their ids: `symbol` is the name that the device gave, "" when it had none. The digest is
 * an identity among honest planners' tables, no defence against those who compute another table of
 * the same digest. Any thread. */
#define SJ_FUNCTIONS_DIGEST_BEGIN                                                                  \
    {                                                                                              \
        UINT64_C(0xcbf29ce484222325), 1                                                            \
    }
void sj_store_digest_function(uint64_t digest[2], uint64_t offset, uint32_t size_bytes,
                              const char *symbol);

/* sj_database_open_reader opens a read-only connection with Sojourn's functions and virtual tables
 * registered (query/). The caller closes it with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_open_reader(const char *path, sqlite3 **database,
                                                sj_error *error);

#endif
