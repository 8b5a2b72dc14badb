/* The line that `sojourn record` prints on standard error during the recording. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_PROGRESS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_PROGRESS_H

#include "collector-server/cli/report_text.h"

/* The `progress` callback of sj_recording_options. `context` is an sj_report_text. */
void sj_report_progress(void *context, const sj_recording_progress *progress);

/* Clears the line, so that other text can be printed. */
void sj_report_progress_clear(sj_report_text *text);

#endif
