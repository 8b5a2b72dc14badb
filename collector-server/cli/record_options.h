/* The options of `sojourn record` and `sojourn attach`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H

#include "agent/policy/draft.h"
#include "agent/recording/recording.h"
#include "collector-server/cli/options.h"

#include <limits.h>

typedef struct sj_record_values {
    /* values of the flags and of --policy; the first member, for sj_policy_options */
    sj_policy_draft *draft;
    sj_recording_options recording;
    sj_policy policy;
    const char *policy_name; /* NULL: none */
    const char *map_file;
    char output[PATH_MAX];
    char destination[PATH_MAX + 16];
    const char *collector; /* NULL: embedded */
    sj_device device;      /* as its enrolment names it; only for a collector */
    const char *summary_path;
    int64_t wait_ms;
    bool has_output;
    bool quiet;
} sj_record_values;

/* Option tables whose values are an sj_record_values. The caller creates the draft before it parses
 * them. Texts are borrowed from argv. */
extern const sj_option sj_record_options[];
extern const sj_option sj_attach_options[];

#endif
