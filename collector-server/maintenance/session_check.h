/* Whether what a database says of a session can be so: the ranges and references that frames are
 * held to, and sums that agree. A file that is imported comes from anybody. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

/* sj_session_check looks at a session of the schema `source`, which is attached to `database` and
 * holds plain tables. Numbers that pass can be added up and moved without an overflow. SJ_EINVAL
 * names what cannot be so; SJ_EIO, SJ_ECORRUPT. Blocking; reads all rows of the session but the
 * bytes of its blocks. */
SJ_MUST_CHECK sj_status sj_session_check(sqlite3 *database, int64_t session_id, sj_error *error);

#endif
