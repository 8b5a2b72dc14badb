/* Removing a session while others are being stored.
 *
 * It first leaves the lists (state "removing"), then its rows go in small transactions of their
 * own, so that the ingest's writer, in this process or another, never waits longer than for one of
 * them; then its space is given back. Killed at any point, it goes on with the next
 * sj_removal_resume. What was removed, and why, is kept in `removals`. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_REMOVAL_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_REMOVAL_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_session_remove removes a session; `database` was opened with SJ_DATABASE_WRITE and holds no
 * transaction. `reason` is for `removals`. SJ_ENOTFOUND; SJ_EPERM: pinned, or still recording and
 * not `force`; SJ_EAGAIN: another writer did not let go; SJ_EIO, SJ_EFULL. Blocking. */
SJ_MUST_CHECK sj_status sj_session_remove(sqlite3 *database, int64_t session_id, const char *reason,
                                          bool force, sj_error *error);

/* sj_removal_resume finishes removals that were cut short. */
SJ_MUST_CHECK sj_status sj_removal_resume(sqlite3 *database, sj_error *error);

#endif
