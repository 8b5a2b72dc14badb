/* The text that `sojourn record` prints on standard error at the end of the recording. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_TEXT_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_TEXT_H

#include "agent/recording/recording.h"
#include "collector-server/cli/session_doubts.h"
#include "collector-server/cli/session_highlights.h"
#include "proto/base/progress.h"

#include <stdio.h>

/* Options of the text, and which parts were already printed. */
typedef struct sj_report_text {
    bool quiet;         /* print only errors and losses */
    bool has_terminal;  /* standard error is a terminal that no recorded program writes to */
    bool drops;         /* calls are dropped when a buffer is full: --when-full drop */
    const char *target; /* database file or collector URL */
    bool line_shown;    /* a progress line is on the screen and must be cleared */
    bool is_wait_reported;
    bool is_budget_wait_reported;
    /* monotonic times at which the wait for the JVM or the collector began; 0: no wait yet */
    uint64_t waiting_for_budget_ns;
    uint64_t waiting_since_ns;
    uint64_t awaited_frames; /* number of pending frames when the wait for the collector began */
    sj_progress_work wait;
    /* `doubts` and `highlights` describe the stored session. They are empty if another process
     * stores it. */
    sj_session_doubts doubts;
    sj_session_highlights highlights;
    bool is_stored;
} sj_report_text;

/* Prints the result of the recording. `file_bytes` is the size of the database; 0 if a server
 * stores the session. */
void sj_report_text_summary(sj_report_text *text, const sj_recording_summary *summary,
                            uint64_t file_bytes);

/* Returns how an unrecorded process is described ("statically linked", ...). NULL: it is not
 * reported. `kind` is an sj_unrecorded. */
const char *sj_report_unrecorded_text(int kind);

#endif
