/* What a recording does not have although the policy asks for it, for reasons that no count of lost
 * calls shows. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H

#include "agent/recording/recording.h"

#include <stdio.h>

/* sj_report_shortfalls writes a line for each kind of shortfall that the recording had. One thread;
 * errors stay in `file`. */
void sj_report_shortfalls(FILE *file, const sj_recording_summary *summary);

/* sj_report_shortfalls_json writes the same as members of a JSON object, each after a comma. */
void sj_report_shortfalls_json(FILE *file, const sj_recording_summary *summary);

/* sj_report_undelivered says what `target` refused for good, and what waits to be sent to it. */
void sj_report_undelivered(FILE *file, const char *target, const sj_recording_summary *summary);

#endif
