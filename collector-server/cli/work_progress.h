/* The progress line of a long command on the terminal. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H
#define SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H

#include "proto/base/progress.h"

#include <stddef.h>
#include <stdint.h>

enum { SJ_PROGRESS_TEXT_BYTES = 96 };

/* Shows the progress of this thread's work (progress.h) on standard error from now on. The line
 * appears after one second of work and disappears when the work ends. Does nothing if standard
 * error is not a terminal. */
void sj_work_progress_start(void);

/* Removes the line and shows no more progress. */
void sj_work_progress_stop(void);

/* Removes the line, so that the caller can print. The line appears again when the work reports its
 * next progress. */
void sj_work_progress_hide(void);

/* Writes the text of the line to `text` and returns `text`. The line has the elapsed time and, if
 * known, the finished part and the estimated remaining time. */
const char *sj_work_progress_text(int64_t elapsed_ns, const sj_progress *progress,
                                  char text[SJ_PROGRESS_TEXT_BYTES]);

#endif
