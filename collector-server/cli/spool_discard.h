/* Deletes the frames of one session from a spool. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SPOOL_DISCARD_H
#define SJ_COLLECTOR_SERVER_CLI_SPOOL_DISCARD_H

#include "agent/host/directories.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdint.h>

typedef struct sj_discarded {
    char session[SJ_SESSION_TEXT_BYTES];
    uint64_t frames;  /* frames that were not delivered */
    uint64_t bytes;   /* bytes of these frames */
    uint64_t refused; /* frames that a collector had refused, or that were damaged */
} sj_discarded;

/* Deletes the session whose id begins with `id` from the spool `root`. Also deletes its refused
 * frames, and what a killed recorder left in shared memory. Returns SJ_ENOTFOUND if no session
 * matches, SJ_EINVAL if several match, SJ_EAGAIN if the session is being recorded or delivered, or
 * SJ_EIO. Blocking. */
SJ_MUST_CHECK sj_status sj_discard_spool(const char *root, const char *id, sj_discarded *discarded,
                                         sj_error *error);

#endif
