/* What the lab can ask of a device. */
#ifndef SJ_AGENT_DAEMON_ORDERS_H
#define SJ_AGENT_DAEMON_ORDERS_H

#include "agent/control/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct sj_order_context {
    const char *spool_root;
    uint64_t spool_bytes; /* of all sessions together */
    void *lab;            /* for `fetch` */
    /* gives at most `capacity` bytes from `offset` on of a file that the lab has made */
    sj_status (*fetch)(void *lab, uint64_t file, uint64_t offset, uint8_t *bytes, size_t capacity,
                       size_t *got, sj_error *error);
} sj_order_context;

/* sj_order_run carries out one command and gives its result, released by the caller.
 * SJ_EUNSUPPORTED: this device does not know the command. Blocking for as long as the command
 * takes. */
SJ_MUST_CHECK sj_status sj_order_run(const sj_order_context *context, const char *kind,
                                     const char *arguments, int timeout_ms, json_t **result,
                                     sj_error *error);

/* sj_order_status describes the device in a few words that change only when something happens. */
json_t *sj_order_status(const sj_order_context *context);

#endif
