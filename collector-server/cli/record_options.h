/* The options of `sojourn record` and `sojourn attach`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_RECORD_OPTIONS_H

#include "agent/policy/draft.h"
#include "agent/recording/recording.h"
#include "collector-server/cli/options.h"

#include <limits.h>

typedef struct sj_record_values {
    sj_policy_draft *draft; /* what flags and --policy say; first, for sj_policy_options */
    sj_recording_options recording;
    sj_policy policy;
    const char *policy_name; /* NULL: none */
    const char *map_file;
    char output[PATH_MAX];
    char destination[PATH_MAX + 16];
    const char *collector; /* NULL: embedded */
    sj_device device;      /* as its enrolment names it; for a collector only */
    const char *summary_path;
    int64_t wait_ms;
    bool has_output;
    bool quiet;
} sj_record_values;

/* Tables of options whose values are a sj_record_values; its draft has to be made before they are
 * parsed. Texts are borrowed from argv. */
extern const sj_option sj_record_options[];
extern const sj_option sj_attach_options[];

#endif
