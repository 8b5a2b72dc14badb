/* The store: one SQLite database (`lab.db`, or the file of `sojourn record`) with one writer.
 *
 * Settings: 16 KiB pages (smaller in a packed file, page_size.h), WAL, synchronous=FULL,
 * incremental vacuum from creation. The transaction that stores a frame is the one that its
 * acknowledgement waits for. It holds the block, its dedup key, and the changed aggregates or a
 * note to recompute them from the block (deferred_aggregates.c). Frames may come in any order and
 * more than once.
 *
 * The store is the sink (sink.h) of record. Single-threaded: the ingest's writer thread owns it. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORE_H
#define SJ_COLLECTOR_SERVER_STORE_STORE_H

#include "collector-server/store/sink.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef sj_sink sj_store;

/* the default of collectors: a live view is a second behind */
enum { SJ_AGGREGATES_DELAY_MS = 1000 };

extern const sj_sink_kind sj_sqlite_sink;

/* The functions of sj_sqlite_sink, for callers that use no other sink. sink.h says what they do.
 *
 * sj_store_open opens the file. Aggregates that a killed collector had deferred are recomputed at
 * once if `aggregates_delay_ms` is 0. Otherwise sj_store_recover and sj_store_maintain recompute
 * them later, and a session that receives frames at its next aggregates. So a collector that
 * restarts with a thousand active sessions accepts frames immediately. */
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

/* Writes some of the deferred aggregates. If there are none, checkpoints the WAL and vacuums a
 * little. */
bool sj_store_maintain(sj_store *store);

/* Writes some of the aggregates that were deferred before this store was opened. Uses at most a
 * tenth of the time. Does nothing if there are none. */
void sj_store_recover(sj_store *store);

/* Returns functions.symbol_key of a function with a name. The key is equal for functions of the
 * same name in modules of the same file name, in any build. Thread-safe. */
int64_t sj_store_symbol_key(const char *module_path, const char *name);

/* Both return functions.symbol_key of a function without a name. The code key is equal for
 * functions with the same code in modules of the same file name. The address key identifies one
 * function of one build. Thread-safe. */
int64_t sj_store_code_key(const char *module_path, uint64_t fingerprint);
int64_t sj_store_address_key(sj_slice build_id, uint64_t offset);

/* Writes the aggregates that a killed collector had deferred, so that a file left by a crash reads
 * as its blocks say. Leaves a file alone if any process wrote to it in the last seconds. Returns
 * SJ_OK if there is nothing to do, else the errors of sj_store_open. */
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
