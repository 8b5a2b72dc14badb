/* Recomputes a session's aggregates from its blocks, and compares them with the stored ones. */
#ifndef SJ_COLLECTOR_SERVER_STORE_RECOMPUTE_CHECK_H
#define SJ_COLLECTOR_SERVER_STORE_RECOMPUTE_CHECK_H

#include "collector-server/store/store.h"

/* Called for each table whose rows differ. `what` is a sentence; it is valid during the call. */
typedef void sj_recompute_report(void *context, int64_t session_id, const char *what);

/* Recomputes the aggregates of each session, and compares times and calls row by row.
 *
 * Skips sessions that were removed, whose aggregates are not all written, that have quarantined
 * blocks or profiles, or that have no timeline. Does not change the file, and takes no lock that a
 * writer waits for. The store must not hold a batch; no other thread may use it. Takes long,
 * because it decodes every block of the sessions. Returns SJ_EIO, SJ_ENOMEM, or SJ_EFULL (temporary
 * files). */
SJ_MUST_CHECK sj_status sj_store_check_recomputed(sj_store *store, const int64_t *session_ids,
                                                  size_t session_count, sj_recompute_report *report,
                                                  void *context, sj_error *error);

#endif
