/* Commands of the collector to a device. */
#ifndef SJ_AGENT_DAEMON_COMMANDS_H
#define SJ_AGENT_DAEMON_COMMANDS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct sj_device_command_context {
    const char *spool_root;
    uint64_t spool_bytes; /* Limit of the spool's disk space for all sessions together. */
    uint32_t policies;    /* See sj_device_policies_number. */
    void *collector;      /* Argument of `fetch`. */
    /* Reads at most `capacity` bytes of a file of the collector, from `offset` on. */
    sj_status (*fetch)(void *collector, uint64_t file, uint64_t offset, uint8_t *bytes,
                       size_t capacity, size_t *got, sj_error *error);
} sj_device_command_context;

/* Runs one command and returns its result, which the caller releases. Returns SJ_EUNSUPPORTED if
 * the device does not know the command, and SJ_ENOMEM. Blocks until the command ends. */
SJ_MUST_CHECK sj_status sj_device_command_run(const sj_device_command_context *context,
                                              const char *kind, const char *arguments,
                                              int timeout_ms, json_t **result, sj_error *error);

/* Error text of a command that was carried out, if there is no memory for its result. */
extern const char sj_device_command_no_result[];

/* Returns a short status object. It equals the previous one unless the state of the device has
 * changed. Returns NULL if out of memory. */
json_t *sj_device_command_status(const sj_device_command_context *context);

#endif
