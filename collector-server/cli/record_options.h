/* The options of `sojourn record` and `sojourn attach`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H

#include "agent/policy/draft.h"
#include "agent/recording/recording.h"
#include "collector-server/cli/options.h"

#include <limits.h>

typedef struct sj_record_values {
    /* the policy that --policy and the other policy options set; sj_policy_options require it as
     * first member */
    sj_policy_draft *draft;
    sj_recording_options recording;
    sj_policy policy;
    const char *policy_name; /* NULL: none */
    const char *map_file;
    char output[PATH_MAX];
    char destination[PATH_MAX + 16];
    const char *collector; /* URL of the server; NULL: the embedded collector */
    /* identity under which this machine is enrolled at the server; unset for the embedded
     * collector */
    sj_device device;
    const char *summary_path;
    int64_t wait_ms;
    bool has_output;
    bool quiet;
} sj_record_values;

/* Option tables for an sj_record_values. The caller sets `draft` before it parses them. Texts are
 * borrowed from argv. */
extern const sj_option sj_record_options[];
extern const sj_option sj_attach_options[];

#endif
