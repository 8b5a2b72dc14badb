/* Long work of a command on the terminal: how long it has run, how much is done, how long it will
 * take. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H
#define SJ_COLLECTOR_SERVER_CLI_WORK_PROGRESS_H

#include "proto/base/progress.h"

#include <stddef.h>
#include <stdint.h>

enum { SJ_PROGRESS_TEXT_BYTES = 96 };

/* sj_work_progress_start shows what this thread does from now on in a line of standard error, from
 * the second second on; nothing where that is no terminal. The line is gone when the work is done.
 */
void sj_work_progress_start(void);

/* sj_work_progress_stop shows no more of this thread's work. */
void sj_work_progress_stop(void);

/* sj_work_progress_hide takes the line away, so that something else can be printed. */
void sj_work_progress_hide(void);

/* sj_work_progress_text writes the line: after so long, with what is known. */
const char *sj_work_progress_text(int64_t elapsed_ns, const sj_progress *progress,
                                  char text[SJ_PROGRESS_TEXT_BYTES]);

#endif
