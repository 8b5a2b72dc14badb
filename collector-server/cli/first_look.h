/* The first look at a recording, behind its summary: how the program crashed, the functions that
 * took the most, what to type next. */
#ifndef SJ_COLLECTOR_SERVER_CLI_FIRST_LOOK_H
#define SJ_COLLECTOR_SERVER_CLI_FIRST_LOOK_H

#include "proto/base/ids.h"

#include <stdio.h>

/* sj_first_look_print prints at most `lines` lines about a session of a database file that nobody
 * writes any more, each function in `columns` columns (0: any); nothing when it cannot be read.
 * Blocks on the file. */
void sj_first_look_print(FILE *file, const char *path, const sj_session_id *session, int lines,
                         int columns);

#endif
