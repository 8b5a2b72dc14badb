/* Code that is not recorded although most of a session's CPU time passed in it: its file, and the
 * command that records it. The recorder's samples show it (agent/recording/code_samples.h). */
#ifndef SJ_COLLECTOR_SERVER_CLI_UNRECORDED_CODE_H
#define SJ_COLLECTOR_SERVER_CLI_UNRECORDED_CODE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SJ_UNRECORDED_NAME_BYTES = 128, SJ_UNRECORDED_COMMAND_BYTES = 1024 };

typedef struct sj_unrecorded_code {
    /* share of the sampled CPU time in this code; 0: most time passed in recorded code */
    int percent;
    char place[SJ_UNRECORDED_NAME_BYTES]; /* the file's name, or "generated code" */
    /* the complete command that records this code; "": there is none, or it cannot be shown */
    char command[SJ_UNRECORDED_COMMAND_BYTES];
} sj_unrecorded_code;

/* Reads the place outside recorded code with the most samples. `arguments` is the program's command
 * line, NULL-terminated. If it is NULL, uses the command line in the session, if a shell would not
 * change it. Leaves `code` zeroed if there are few samples, or if less than half of their time
 * passed in unrecorded code. Returns the errors of sj_sql_each. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_unrecorded_code_read(sqlite3 *database, int64_t session_id,
                                                char *const *arguments, sj_unrecorded_code *code,
                                                sj_error *error);

/* Writes a line about the code, which begins with `first`. Writes the command in a second line,
 * which begins with `next`. Writes nothing if `percent` is 0. */
void sj_unrecorded_code_print(FILE *file, const sj_unrecorded_code *code, const char *first,
                              const char *next);

#endif
