/* The shortfalls of a recording: things that it lacks although the policy asks for them. The counts
 * of lost calls do not show the reasons. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H

#include "agent/recording/recording.h"

#include <stdio.h>

/* Writes a line for each kind of shortfall of the recording. One thread at a time. Write errors
 * stay in `file`. */
void sj_report_shortfalls(FILE *file, const sj_recording_summary *summary);

/* Writes the shortfalls as members of a JSON object, each after a comma. */
void sj_report_shortfalls_json(FILE *file, const sj_recording_summary *summary);

/* Writes what `target` permanently refused, and what still waits to be sent to it. */
void sj_report_undelivered(FILE *file, const char *target, const sj_recording_summary *summary);

#endif
