/* Progress of a long command on the terminal: time elapsed, share done, time left. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H
#define SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H

#include "proto/base/progress.h"

#include <stddef.h>
#include <stdint.h>

enum { SJ_PROGRESS_TEXT_BYTES = 96 };

/* Starts a progress line on standard error for the work of this thread. The line appears after one
 * second, and only if standard error is a terminal. It is removed when the work is done. */
void sj_work_progress_start(void);

/* Stops the progress line of this thread's work. */
void sj_work_progress_stop(void);

/* Removes the line, so that the caller can print something else. */
void sj_work_progress_hide(void);

/* Writes the text of the line into `text` and returns it. */
const char *sj_work_progress_text(int64_t elapsed_ns, const sj_progress *progress,
                                  char text[SJ_PROGRESS_TEXT_BYTES]);

#endif
