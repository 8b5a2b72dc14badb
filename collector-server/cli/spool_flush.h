/* Delivers the frames that earlier recordings left in a spool. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SPOOL_FLUSH_H
#define SJ_COLLECTOR_SERVER_CLI_SPOOL_FLUSH_H

#include "collector-server/cli/command.h"

#include <stdint.h>

/* The default timeout: 10 s for a session that is sent to a server. For a database: 1 minute, which
 * begins again with each acknowledgement. */
enum { SJ_FLUSH_USUAL_WAIT = -1 };

typedef struct sj_flush_request {
    const sj_command *command; /* named in messages about undelivered sessions */
    const char *root;          /* folder of the spool */
    const char *collector;     /* URL to send to; NULL: the target of each session */
    const char *only_for;      /* only sessions with this target; NULL: all */
    int64_t wait_ms;           /* timeout for each session, or SJ_FLUSH_USUAL_WAIT */
} sj_flush_request;

typedef struct sj_flush_totals {
    unsigned delivered;
    unsigned in_use;   /* sessions that are being recorded */
    unsigned kept;     /* sessions that could not be delivered and stay in the spool */
    unsigned refused;  /* sessions of which the collector refused frames for good; these frames stay
                        * in the spool folder */
    unsigned salvaged; /* sessions of killed recorders */
} sj_flush_totals;

/* Delivers the sessions of a spool and removes the delivered sessions. Skips sessions that are
 * being recorded. Prints a message for each session that fails, and counts it. Fails with
 * SJ_ENOTFOUND if the spool does not exist. Blocks until each session is delivered or its timeout
 * has passed. */
SJ_MUST_CHECK sj_status sj_flush_spool(const sj_flush_request *request, sj_flush_totals *totals,
                                       sj_error *error);

#endif
