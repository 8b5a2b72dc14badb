/* What the collector can ask of a device. */
#ifndef SJ_AGENT_DAEMON_COMMANDS_H
#define SJ_AGENT_DAEMON_COMMANDS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct sj_device_command_context {
    const char *spool_root;
    uint64_t spool_bytes; /* of all sessions together */
    void *collector;      /* for `fetch` */
    /* gives at most `capacity` bytes from `offset` on of a file that the collector has made */
    sj_status (*fetch)(void *collector, uint64_t file, uint64_t offset, uint8_t *bytes,
                       size_t capacity, size_t *got, sj_error *error);
} sj_device_command_context;

/* sj_device_command_run carries out one command and gives its result, released by the caller.
 * SJ_EUNSUPPORTED: this device does not know the command. Blocking for as long as the command
 * takes. */
SJ_MUST_CHECK sj_status sj_device_command_run(const sj_device_command_context *context,
                                              const char *kind, const char *arguments,
                                              int timeout_ms, json_t **result, sj_error *error);

/* sj_device_command_status describes the device in a few words that change only when something
 * happens. */
json_t *sj_device_command_status(const sj_device_command_context *context);

#endif
