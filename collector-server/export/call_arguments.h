/* Writes the recorded data of single calls as JSON: arguments and results, errno, the names of the
 * matching rules, CPU time and memory. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_ARGUMENTS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_ARGUMENTS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The name of a function's argument, or of its result (`position` 0). */
typedef struct sj_value_name {
    int64_t function_id, position;
    char *name; /* owned */
} sj_value_name;

/* Prepared statements for the recorded data of a session's calls. */
typedef struct sj_call_arguments_reader {
    int64_t session_id;
    sqlite3_stmt *values; /* NULL: the session has no values */
    sqlite3_stmt *costs;  /* NULL: the session has no costs */
    sj_value_name *names; /* sorted by function and position */
    size_t name_count, name_capacity;
} sj_call_arguments_reader;

/* Initializes a reader. Close the reader even if this fails. Fails with SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_arguments_open(sqlite3 *database, int64_t session_id,
                                               sj_call_arguments_reader *reader, sj_error *error);
void sj_call_arguments_close(sj_call_arguments_reader *reader); /* safe on a zeroed structure */

/* Writes the text `before`, and then a JSON object with the recorded data of a call. Writes nothing
 * if no data of the call were recorded. Returns SJ_ENOMEM or an error of SQLite. */
SJ_MUST_CHECK sj_status sj_call_arguments_write(const sj_call_arguments_reader *reader,
                                                int64_t function_id, int64_t call_id,
                                                const char *before, FILE *output, sj_error *error);

/* Writes the recorded data of a call as JSON to `*text`, which the caller frees; NULL if no data of
 * the call were recorded. Returns SJ_ENOMEM or an error of SQLite. */
SJ_MUST_CHECK sj_status sj_call_arguments_text(const sj_call_arguments_reader *reader,
                                               int64_t function_id, int64_t call_id, char **text,
                                               sj_error *error);

#endif
