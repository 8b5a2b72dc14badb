/* The last lines of what `sojourn record` prints: how the program crashed, where its time went,
 * what to type next. */
#ifndef SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H
#define SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H

#include "collector-server/cli/session_highlights.h"

#include <stdbool.h>
#include <stdio.h>

/* sj_highlights_print writes at most `lines` lines to `file`; functions have those that nothing
 * else takes. `path` is the database. `crashed`: the recorded program did, so its signal is shown.
 */
void sj_highlights_print(FILE *file, const sj_session_highlights *highlights, bool crashed,
                         const char *path, uint32_t lines);

#endif
