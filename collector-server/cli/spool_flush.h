/* Delivery of what earlier recordings left in a spool. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SPOOL_FLUSH_H
#define SJ_COLLECTOR_SERVER_CLI_SPOOL_FLUSH_H

#include "collector-server/cli/command.h"

#include <stdint.h>

enum { SJ_FLUSH_USUAL_WAIT = -1 }; /* 10 s for a server, 1 minute for a database's next answer */

typedef struct sj_flush_request {
    const sj_command *command; /* that says what could not be delivered */
    const char *root;          /* the spool */
    const char *collector;     /* NULL: where each session was meant to go */
    const char *only_for;      /* NULL: all; else only sessions that were meant to go there */
    int64_t wait_ms;           /* for each session */
} sj_flush_request;

typedef struct sj_flush_totals {
    unsigned delivered;
    unsigned in_use; /* being recorded */
    unsigned kept;
    unsigned refused;  /* frames of them, for good: they are kept aside, and named each time */
    unsigned salvaged; /* of recorders that were killed */
} sj_flush_totals;

/* sj_flush_spool delivers and removes sessions of a spool; those that are being recorded are left
 * alone. SJ_ENOTFOUND: there is no spool. Blocks until each was taken, or for its wait. */
SJ_MUST_CHECK sj_status sj_flush_spool(const sj_flush_request *request, sj_flush_totals *totals,
                                       sj_error *error);

#endif
