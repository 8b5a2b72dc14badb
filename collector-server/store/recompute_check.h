/* Compares a session's aggregates with its blocks: they are recomputed beside the stored ones. */
#ifndef SJ_COLLECTOR_SERVER_STORE_RECOMPUTE_CHECK_H
#define SJ_COLLECTOR_SERVER_STORE_RECOMPUTE_CHECK_H

#include "collector-server/store/store.h"

/* Called for each table whose rows differ; `what` is a sentence and lasts for the call. */
typedef void sj_recompute_report(void *context, int64_t session_id, const char *what);

/* sj_store_check_recomputed recomputes the aggregates of each of the sessions and compares times
 * and calls row by row. Sessions whose aggregates are not written yet, that have marked blocks or
 * profiles, that have no timeline, or that are gone are left out. Changes no table of
 * the file and takes no lock that a writer waits for. The store holds no batch, and may not be used
 * by another thread. Blocking: decodes all blocks. SJ_EIO, SJ_ENOMEM, SJ_EFULL (temporary files).
 */
SJ_MUST_CHECK sj_status sj_store_check_recomputed(sj_store *store, const int64_t *session_ids,
                                                  size_t session_count, sj_recompute_report *report,
                                                  void *context, sj_error *error);

#endif
