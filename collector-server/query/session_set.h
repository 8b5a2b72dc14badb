/* Sets of sessions, as users name them for a comparison.
 *
 *   SET    = GROUP { "," GROUP }          any of the groups
 *   GROUP  = FILTER { "+" FILTER }        all of the filters
 *   FILTER = "all" | "last" | "last:" N | SESSION_ID | beginning of a uuid
 *          | "device:" NAME | "device-id:" ID | "build:" BUILD_ID (its beginning, hexadecimal)
 *          | "tag:" KEY [ "=" VALUE ] | "name:" GLOB | "command:" GLOB
 *          | "since:" TIME | "until:" TIME  (2026-11-20 or 2026-11-20T14:30, UTC)
 *          | "mark:" NAME
 *
 * Each session of a set is one sample. With "mark:", each pair of begin and end of that mark is a
 * sample: the time between them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_SET_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_SET_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SESSION_SET_MAX_SAMPLES = 4096 /* samples in a set */ };

typedef struct sj_sample {
    int64_t session_id;
    bool windowed;   /* only the calls that began in [from_ns, to_ns) */
    int64_t from_ns; /* since the session's start */
    int64_t to_ns;
} sj_sample;

typedef struct sj_session_set {
    sj_sample *samples; /* owned; sorted by session and time, without duplicates */
    size_t count;
} sj_session_set;

/* Finds the sessions that `text` names. Returns SJ_EINVAL if it is not a set; the message says
 * where. Returns SJ_ENOTFOUND if no session matches; SJ_ELIMIT for more than `most` samples
 * (SIZE_MAX: no limit; each takes 32 bytes); SJ_EIO; SJ_ENOMEM. Blocks on the database. After
 * success, call sj_session_set_deinit. */
SJ_MUST_CHECK sj_status sj_session_set_read(sqlite3 *database, const char *text, size_t most,
                                            sj_session_set *set, sj_error *error);
void sj_session_set_deinit(sj_session_set *set);

#endif
