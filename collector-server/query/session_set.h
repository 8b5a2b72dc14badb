/* Finds the sessions of a set, as users name it for a comparison.
 *
 *   SET    = GROUP { "," GROUP }          a session matches any of the groups
 *   GROUP  = FILTER { "+" FILTER }        a session matches all of the filters
 *   FILTER = "all" | "last" | "last:" N | SESSION_ID
 *          | UUID (its beginning, at least 4 hexadecimal digits)
 *          | "device:" NAME | "device-id:" ID | "build:" BUILD_ID (its beginning, hexadecimal)
 *          | "tag:" KEY [ "=" VALUE ] | "device-tag:" KEY [ "=" VALUE ]
 *          | "name:" GLOB | "command:" GLOB
 *          | "since:" TIME | "until:" TIME  (2026-11-20 or 2026-11-20T14:30, UTC)
 *          | "mark:" NAME
 *
 * A number is a SESSION_ID. A number of 8 to 18 digits is a UUID if no session has that id; a
 * longer number is a UUID.
 *
 * Each session of a set is one sample. With "mark:", each begin mark of that name is a sample: the
 * time from the begin mark to the next end mark, or without an end if no end mark follows. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_SET_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_SET_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SESSION_SET_MAX_SAMPLES = 4096 }; /* the usual `most` of sj_session_set_read */

typedef struct sj_sample {
    int64_t session_id;
    bool windowed;   /* the sample has only the calls that began in [from_ns, to_ns) */
    int64_t from_ns; /* since the session's start */
    int64_t to_ns;   /* since the session's start; INT64_MAX: no end */
} sj_sample;

typedef struct sj_session_set {
    sj_sample *samples; /* owned; sorted by session and time, without duplicates */
    size_t count;
} sj_session_set;

/* Writes the samples of the sessions that `text` names to `set`. Returns SJ_EINVAL if `text` is not
 * a set, and the message quotes the wrong filter. Returns SJ_ENOTFOUND if no session matches.
 * Returns SJ_ELIMIT if there are more than `most` samples (SIZE_MAX: no limit); a sample takes 32
 * bytes. Returns SJ_EIO if the database cannot be read, or SJ_ENOMEM. Blocks on the database. After
 * success, call sj_session_set_deinit. */
SJ_MUST_CHECK sj_status sj_session_set_read(sqlite3 *database, const char *text, size_t most,
                                            sj_session_set *set, sj_error *error);
void sj_session_set_deinit(sj_session_set *set);

#endif
