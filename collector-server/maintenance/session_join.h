/* Joins two parts of one session. Two collectors store a part each if a device changes its
 * collector during a session.
 *
 * Events that both parts have are stored once. Events that no part has are gaps. Aggregates are
 * computed again from all blocks. Of a name, tags and notes that differ, the target's are kept.
 * Both parts must have been recorded by one recorder, and must agree on the events that both have.
 */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_JOIN_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SESSION_JOIN_H

#include "collector-server/maintenance/copy_job.h"

/* Returns SJ_OK if the source has something that the target lacks, else SJ_EEXIST. Blocks. */
SJ_MUST_CHECK sj_status sj_session_join_check(const sj_copy_job *copy);

/* Chooses the blocks of the source that the target needs, and removes blocks of the target that the
 * source has in a better form. Call it in the transaction of the copy, when all ids are known.
 * Returns SJ_EUNSUPPORTED if the parts cannot be joined; the message says why. Also returns
 * SJ_ENOMEM, SJ_EIO, or SJ_ECORRUPT. Blocks. */
SJ_MUST_CHECK sj_status sj_session_join_begin(sj_copy_job *copy);

/* Returns the rest of an INSERT of rows of the source: a condition on a row `r`, and what to do if
 * the target has the row. NULL: the table is not copied. */
const char *sj_session_join_rows(const char *table);

/* Merges rows that both parts have, and computes the aggregates again. Returns SJ_EEXIST if the
 * source had nothing new. Also returns SJ_ENOMEM, SJ_EIO or SJ_EFULL. Blocks. */
SJ_MUST_CHECK sj_status sj_session_join_end(const sj_copy_job *copy);

#endif
