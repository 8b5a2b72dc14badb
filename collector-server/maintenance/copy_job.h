/* Runs the SQL of a copy of a session. Files outside of session_copy.c and session_join.c do not
 * include it. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_COPY_JOB_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_COPY_JOB_H

#include "collector-server/store/block_files.h"
#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_copy_job {
    sqlite3 *target;
    int64_t from; /* session_id in the source */
    int64_t to;
    bool is_join;            /* the target has a part of the session */
    int64_t checked_version; /* the source's data_version when the session was checked */
    int64_t changes_before;  /* rows that the target's connection had changed before a join */
    sj_block_files *files;   /* reads moved blocks of the source */
    sj_progress_work work;   /* two steps for each block: check and copy */
    sj_error *error;
} sj_copy_job;

/* Returns the status of the target's last error, with a message that names `what`. */
SJ_MUST_CHECK sj_status sj_copy_fail(const sj_copy_job *copy, const char *what);

/* Runs statements on the target. `what` is for the message of an error. */
SJ_MUST_CHECK sj_status sj_copy_run(const sj_copy_job *copy, const char *what, const char *sql);

/* Does what sj_copy_run does with SQL from sqlite3_mprintf, and frees it. NULL returns SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_copy_run_made(const sj_copy_job *copy, const char *what, char *sql);

/* Reads the first number of a query. Binds the session of the source to its parameter, if it has
 * one. Returns SJ_ENOTFOUND if the result has no row. */
SJ_MUST_CHECK sj_status sj_copy_number(const sj_copy_job *copy, const char *sql, int64_t *number);

#endif
