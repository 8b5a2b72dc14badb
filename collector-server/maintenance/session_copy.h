/* Copies one session from a database to another: `sojourn session export` and
 * `sojourn session import`. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_COPY_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_COPY_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_copied_session {
    int64_t session_id; /* in the target */
    bool is_joined;     /* the target had a part of the session */
} sj_copied_session;

/* Copies a session and everything that belongs to it (device, modules, functions, calls,
 * aggregates, marks, notes). The source is the database `source_path`. `target` was opened with
 * SJ_DATABASE_WRITE or _CREATE. One transaction copies everything, or nothing. The copied session
 * keeps its uuid, and its rows get new ids. If `target` has a part of
 * the session, joins both parts (session_join.h).
 *
 * Returns SJ_EEXIST if `target` already has all of the session, and SJ_EUNSUPPORTED if the parts
 * cannot be joined. Returns SJ_ENOTFOUND if the source does not have it, and
 * SJ_EVERSION if `source_path` has another schema version. Returns SJ_EINVAL if the session is
 * inconsistent (session_check.h), or as sj_session_copy_check does. Other errors: SJ_EIO, SJ_EFULL,
 * SJ_ECORRUPT. Blocking; a progress handler of `target` can interrupt it. */
SJ_MUST_CHECK sj_status sj_session_copy(const char *source_path, int64_t session_id,
                                        sqlite3 *target, sj_copied_session *copied,
                                        sj_error *error);

/* Returns SJ_EINVAL if `source_path` has a view or another object with the name of a table of
 * `target`. The query of such a view may never end. Call it before you query the sessions of an
 * untrusted file. Other errors: as sj_session_copy. */
SJ_MUST_CHECK sj_status sj_session_copy_check(const char *source_path, sqlite3 *target,
                                              sj_error *error);

#endif
