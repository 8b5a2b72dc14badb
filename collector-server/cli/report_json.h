/* The result of `sojourn record` for programs: --summary. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_JSON_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_JSON_H

#include "collector-server/cli/report_text.h"

/* Writes the result of the recording as one JSON object. */
void sj_report_json(FILE *file, const sj_report_text *text, const sj_recording_summary *summary,
                    uint64_t file_bytes);

#endif
