/* What `sojourn record` prints while it records and at the end, always on standard error. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TEXT_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TEXT_H

#include "agent/recording/recording.h"
#include "collector-server/cli/session_doubts.h"
#include "collector-server/cli/session_highlights.h"
#include "proto/base/progress.h"

#include <stdio.h>

/* How much of it is wanted, and where it goes. */
typedef struct sj_report_text {
    bool quiet;         /* nothing but errors and losses */
    bool has_terminal;  /* standard error is one, on which no recorded program writes */
    bool drops;         /* full rings do not wait: --when-full drop */
    const char *target; /* database file or collector URL */
    bool line_shown;    /* a progress line has to be cleared */
    bool is_wait_reported;
    bool is_budget_wait_reported;
    uint64_t waiting_for_budget_ns; /* monotonic, since when; 0: not yet */
    uint64_t waiting_since_ns;      /* for the collector; 0: not yet */
    uint64_t awaited_frames;        /* at that time */
    sj_progress_work wait;
    /* of the stored session; none when somebody else stores it */
    sj_session_doubts doubts;
    sj_session_highlights highlights;
    bool is_stored;
} sj_report_text;

/* sj_report_text_progress is the `progress` of sj_recording_options; `context` a sj_report_text. */
void sj_report_text_progress(void *context, const sj_recording_progress *progress);

/* sj_report_text_summary prints the result; `file_bytes` is the size of the database, 0 when it
 * is elsewhere. */
void sj_report_text_summary(sj_report_text *text, const sj_recording_summary *summary,
                            uint64_t file_bytes);

/* sj_report_text_json writes the same as one JSON object. */
void sj_report_text_json(FILE *file, const sj_report_text *text,
                         const sj_recording_summary *summary, uint64_t file_bytes);

#endif
