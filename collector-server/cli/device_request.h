/* `sojourn device`: what people type, as a command of the lab. */
#ifndef SJ_COLLECTOR_CLI_DEVICE_REQUEST_H
#define SJ_COLLECTOR_CLI_DEVICE_REQUEST_H

#include "agent/control/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_device_options {
    const char *database;
    const char *lab;  /* invite: address that devices reach the lab at */
    const char *tls;  /* invite: where the lab's certificate is */
    const char *name; /* launch, attach: label of the session */
    const char *policy;
    const char *app;
    const char *session;
    const char *format;
    const char *output;    /* export: file here; NULL: standard output */
    const char *directory; /* export: on the device */
    int64_t timeout_s;     /* 0: as long as the command usually may take */
    int64_t for_s;         /* attach; 0: until it is told to leave */
    int64_t hours;
    bool no_wait;
} sj_device_options;

/* sj_device_request turns words into the kind and the arguments of a command (control.h), which the
 * caller releases. SJ_EINVAL says what the words should have been. */
SJ_MUST_CHECK sj_status sj_device_request(const sj_device_options *options, int argc, char **argv,
                                          const char **kind, json_t **arguments, sj_error *error);

#endif
