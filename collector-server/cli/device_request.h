/* `sojourn device`: makes a command for devices from the words of the command line. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DEVICE_REQUEST_H
#define SJ_COLLECTOR_SERVER_CLI_DEVICE_REQUEST_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_device_options {
    const char *database;
    const char *collector; /* invite: address where devices reach the collector */
    const char *tls;       /* invite: where the collector's certificate is */
    const char *name;      /* launch, attach: label of the session */
    const char *policy;
    const char *app;
    const char *session;
    const char *format;
    const char *output;    /* export: file on this machine; NULL: standard output */
    const char *directory; /* export: directory on the device */
    int64_t timeout_ms;    /* 0: the usual timeout of the command */
    int64_t for_ms;        /* attach; 0: until a detach command */
    int64_t hours;
    bool no_wait;
} sj_device_options;

/* Makes the kind and the arguments of a command (control.h) from `argv`, which begins with the
 * command's name. `kind` is borrowed. The caller releases `arguments`. Fails with SJ_EINVAL; the
 * message says which values are valid. Fails with the errors of sj_policy_draft_load for a
 * policy. */
SJ_MUST_CHECK sj_status sj_device_request(const sj_device_options *options, int argc, char **argv,
                                          const char **kind, json_t **arguments, sj_error *error);

#endif
