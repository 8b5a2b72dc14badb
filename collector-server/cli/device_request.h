/* `sojourn device`: what people type, as a command to devices. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DEVICE_REQUEST_H
#define SJ_COLLECTOR_SERVER_CLI_DEVICE_REQUEST_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_device_options {
    const char *database;
    const char *collector; /* invite: address at which devices reach the collector */
    const char *tls;       /* invite: where the collector's certificate is */
    const char *name;      /* launch, attach: label of the session */
    const char *policy;
    const char *app;
    const char *session;
    const char *format;
    const char *output;    /* export: file here; NULL: standard output */
    const char *directory; /* export: on the device */
    int64_t timeout_ms;    /* 0: as long as the command usually may take */
    int64_t for_ms;        /* attach; 0: until a detach command */
    int64_t hours;
    bool no_wait;
} sj_device_options;

/* sj_device_request turns words into the kind and the arguments of a command (control.h), which the
 * caller releases. SJ_EINVAL says what the words should have been. */
SJ_MUST_CHECK sj_status sj_device_request(const sj_device_options *options, int argc, char **argv,
                                          const char **kind, json_t **arguments, sj_error *error);

#endif
