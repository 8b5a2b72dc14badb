/* Prints the shortfalls of a recording: reasons why calls that the policy selects are missing,
 * without being counted as lost. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_SHORTFALLS_H

#include "agent/recording/recording.h"

#include <stdio.h>

/* Writes a line for each kind of shortfall. The caller checks `file` for write errors. Not
 * thread-safe. */
void sj_report_shortfalls(FILE *file, const sj_recording_summary *summary);

/* Writes the shortfalls as members of a JSON object, each after a comma. */
void sj_report_shortfalls_json(FILE *file, const sj_recording_summary *summary);

/* Writes which frames `target` permanently refused, and how to deliver the frames that are still in
 * the spool. */
void sj_report_undelivered(FILE *file, const char *target, const sj_recording_summary *summary);

#endif
