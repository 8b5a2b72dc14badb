/* The last lines that `sojourn record` prints: how the program crashed, where its time went, and
 * the next commands to type. */
#ifndef SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H
#define SJ_COLLECTOR_SERVER_CLI_HIGHLIGHTS_TEXT_H

#include "collector-server/cli/session_highlights.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes at most `lines` lines to `file`. The list of functions gets the lines that the other parts
 * do not use. `path` is the path of the database. If `crashed` is true, the recorded program
 * crashed; then also writes the signal, if it is known. */
void sj_highlights_print(FILE *file, const sj_session_highlights *highlights, bool crashed,
                         const char *path, uint32_t lines);

#endif
