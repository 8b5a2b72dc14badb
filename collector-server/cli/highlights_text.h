/* The last lines that `sojourn record` prints: how the program crashed, where its time went, what
 * to type next. */
#ifndef SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H
#define SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H

#include "collector-server/cli/session_highlights.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes at most `lines` lines to `file`. Functions use the lines that remain after the others.
 * `path` is the database. If `crashed` is true, the recorded program crashed and its signal is
 * shown. */
void sj_highlights_print(FILE *file, const sj_session_highlights *highlights, bool crashed,
                         const char *path, uint32_t lines);

#endif
