/* Code that is not recorded, if most of a session's CPU time passed in it: which file it is in, and
 * the options that record it. The samples of the recorder show it (agent/recording). */
#ifndef SJ_COLLECTOR_SERVER_CLI_UNRECORDED_CODE_H
#define SJ_COLLECTOR_SERVER_CLI_UNRECORDED_CODE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SJ_UNRECORDED_NAME_BYTES = 128, SJ_UNRECORDED_COMMAND_BYTES = 1024 };

typedef struct sj_unrecorded_code {
    int percent; /* its share of the sampled CPU time; 0: most time passed in recorded code */
    char place[SJ_UNRECORDED_NAME_BYTES]; /* the file's name, or "generated code" */
    /* the complete command that records this code; "": nothing records it */
    char command[SJ_UNRECORDED_COMMAND_BYTES];
} sj_unrecorded_code;

/* Reads the place outside recorded code with the most samples. `arguments` is the program's command
 * line, NULL-terminated; NULL: the session's own is used, if a shell would not change it. Leaves
 * `code` zeroed if there are few samples, or if less than half of their time passed elsewhere. */
void sj_unrecorded_code_read(sqlite3 *database, int64_t session_id, char *const *arguments,
                             sj_unrecorded_code *code);

/* Writes the lines about the code: first `first`, then `next` at the beginning of the next line.
 * Writes nothing if `percent` is 0. */
void sj_unrecorded_code_print(FILE *file, const sj_unrecorded_code *code, const char *first,
                              const char *next);

#endif
