/* Checks that what a database says of a session can be so: the ranges and references that frames
 * are held to, blocks that can be read, and sums that agree. Anyone may have written an imported
 * file. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_CHECK_H

#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdint.h>

/* Checks a session of the schema `source`, which is attached to `database` and holds plain tables:
 * its rows, and the bytes of its blocks that are not marked. Blocks without bytes pass. Numbers
 * that pass can be added up and moved without an overflow. Reports each checked block to `work`.
 * Returns SJ_EINVAL and a sentence if the session cannot be so, SJ_EIO, SJ_ECORRUPT, SJ_ENOMEM.
 * Blocks: reads all rows and decodes all blocks of the session. */
SJ_MUST_CHECK sj_status sj_session_check(sqlite3 *database, int64_t session_id,
                                         sj_progress_work work, sj_error *error);

#endif
