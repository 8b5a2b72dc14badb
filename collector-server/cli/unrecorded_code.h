/* If most of a session's CPU time passed in code that is not recorded, finds the code's file and a
 * command that records it. The recorder's samples of the program counter show where the time passed
 * (agent/recording). */
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

/* Finds the unrecorded place with the most samples. Prefers a file that can be recorded, unless it
 * has less than a quarter of the unrecorded time. `arguments` is the program's command line,
 * NULL-terminated; NULL: the session's own is used, if a shell would not change it. Leaves `code`
 * zeroed if there are few samples, or if less than half of their time passed in unrecorded code. */
void sj_unrecorded_code_read(sqlite3 *database, int64_t session_id, char *const *arguments,
                             sj_unrecorded_code *code);

/* Writes a line about the code, and a line with the command if there is one. The first line begins
 * with `first`, the second with `next`. Writes nothing if `percent` is 0. */
void sj_unrecorded_code_print(FILE *file, const sj_unrecorded_code *code, const char *first,
                              const char *next);

#endif
