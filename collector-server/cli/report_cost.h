/* Prints what a recording cost. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COST_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COST_H

#include "agent/recording/recording.h"
#include "collector-server/query/query.h"

#include <stdio.h>

typedef struct sj_time_text {
    char text[SJ_DURATION_TEXT_BYTES];
} sj_time_text;

/* Writes a time for people ("12.5 ms") to `text`. Returns `text->text`. */
const char *sj_format_time(uint64_t ns, sj_time_text *text);

/* Writes the cost in one line: the CPU time of tracing with its parts, the waits of the program,
 * and the CPU time of the recorder. Waits and the recorder's CPU time are not part of the sum. The
 * caller checks `file` for write errors. Not thread-safe. */
void sj_report_cost(FILE *file, const sj_recording_cost *cost);

#endif
