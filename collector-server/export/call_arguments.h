/* What was recorded of single calls, as JSON: values of arguments and results by the names that
 * debug data give them, errno, the rules that the call met, CPU time and memory. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_ARGUMENTS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_ARGUMENTS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct sj_value_name {
    int64_t function_id, position;
    char *name; /* owned */
} sj_value_name;

/* Reads what was recorded of a session's calls. */
typedef struct sj_call_arguments_reader {
    int64_t session_id;
    sqlite3_stmt *values; /* NULL: the session has none */
    sqlite3_stmt *costs;  /* likewise */
    sj_value_name *names; /* by function and position */
    size_t name_count, name_capacity;
} sj_call_arguments_reader;

/* sj_call_arguments_open prepares; close it also when it failed. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_arguments_open(sqlite3 *database, int64_t session_id,
                                               sj_call_arguments_reader *reader, sj_error *error);
void sj_call_arguments_close(sj_call_arguments_reader *reader); /* safe on a zeroed one */

/* sj_call_arguments_write writes `,"args":{...}` of a call; nothing when nothing was recorded. */
void sj_call_arguments_write(const sj_call_arguments_reader *reader, int64_t function_id,
                             int64_t call_id, FILE *output);

#endif
