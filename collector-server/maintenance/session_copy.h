/* One session out of a database and into another: `sojourn session export` and `import`. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_COPY_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_COPY_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

/* sj_session_copy copies a session with everything that belongs to it (device, modules, functions,
 * calls, aggregates, marks, notes) from the database `source_path` into `target`, opened with
 * SJ_DATABASE_WRITE or _CREATE, in one transaction: it comes whole or not at all. Ids are given
 * anew; the uuid is the same. `*copied_id` is its session_id there. SJ_EEXIST: it is there already;
 * SJ_ENOTFOUND; SJ_EVERSION: `source_path` has another schema version; SJ_EINVAL as below, or the
 * session contradicts itself (session_check.h); SJ_EIO,
 * SJ_EFULL, SJ_ECORRUPT. Blocking; a progress handler of `target` can end it. */
SJ_MUST_CHECK sj_status sj_session_copy(const char *source_path, int64_t session_id,
                                        sqlite3 *target, int64_t *copied_id, sj_error *error);

/* sj_session_copy_check returns SJ_EINVAL when something else in `source_path`, such as a view that
 * never ends, has the name of a table of `target`; until then the file must not be asked for its
 * sessions where it comes from others. Else fails as sj_session_copy does. */
SJ_MUST_CHECK sj_status sj_session_copy_check(const char *source_path, sqlite3 *target,
                                              sj_error *error);

/* sj_session_copy_count returns how many sessions a database has to copy: those that are not being
 * removed. 0: it cannot be read. */
uint64_t sj_session_copy_count(sqlite3 *source);

#endif
