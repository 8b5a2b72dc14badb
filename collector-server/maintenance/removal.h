/* Removes a session while other sessions are stored.
 *
 * First the removal hides the session (state "removing"). Then it deletes the rows in small
 * transactions, so that the ingest's writer, in this or another process, waits for at most one of
 * them. Then it frees the disk space. If the process is killed, the next sj_removal_resume
 * continues. The table `removals`
 * records what was removed, and why. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_REMOVAL_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_REMOVAL_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Removes a session. `database` was opened with SJ_DATABASE_WRITE and is not in a transaction.
 * `reason` is stored in `removals`. Returns SJ_ENOTFOUND if the session does not exist. Returns
 * SJ_EPERM if the session is pinned, or if it is being recorded and `force` is false. Returns
 * SJ_EAGAIN if another writer kept the lock; SJ_EIO or SJ_EFULL. Blocking. */
SJ_MUST_CHECK sj_status sj_session_remove(sqlite3 *database, int64_t session_id, const char *reason,
                                          bool force, sj_error *error);

/* Finishes interrupted removals. Errors as for sj_session_remove. */
SJ_MUST_CHECK sj_status sj_removal_resume(sqlite3 *database, sj_error *error);

#endif
