/* Checks that the rows of a session are consistent, because an imported file may come from anyone.
 * The rows must keep the ranges and references that frames must keep, the blocks must be readable,
 * and the sums must agree. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H

#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdint.h>

/* Checks a session of the schema `source`, which is attached to `database` and contains plain
 * tables: its rows, and the bytes of its unmarked blocks. Blocks without bytes pass. Numbers that
 * pass can be added and shifted without overflow. Reports each checked block to `work`. Returns
 * SJ_EINVAL and a message if the session is inconsistent; SJ_EIO, SJ_ECORRUPT or SJ_ENOMEM. Blocks
 * while it reads all rows and decodes all blocks of the session. */
SJ_MUST_CHECK sj_status sj_session_check(sqlite3 *database, int64_t session_id,
                                         sj_progress_work work, sj_error *error);

#endif
