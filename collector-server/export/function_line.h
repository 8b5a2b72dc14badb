/* Writes the two texts of a call in function.txt: its function's name with the arguments, and its
 * result. */
#ifndef SJ_COLLECTOR_EXPORT_FUNCTION_LINE_H
#define SJ_COLLECTOR_EXPORT_FUNCTION_LINE_H

#include "proto/base/error.h"
#include "proto/block/call_text.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The texts of one call. Longer texts are cut. */
typedef struct sj_function_line {
    char name[SJ_CALL_TEXT_NAME];
    char result[SJ_CALL_TEXT_RESULT];
} sj_function_line;

/* A prepared statement that reads the recorded values of a session's calls. */
typedef struct sj_function_values {
    sqlite3_stmt *select; /* NULL: the session has no values */
    int64_t session_id;
} sj_function_values;

/* Initializes a reader. Close the reader even if this fails. Returns the errors of
 * sj_sql_each. */
SJ_MUST_CHECK sj_status sj_function_values_open(sqlite3 *database, int64_t session_id,
                                                sj_function_values *values, sj_error *error);
void sj_function_values_close(sj_function_values *values);

/* Writes the texts of a call to `line`. `name` is the function's name, NULL if unknown. `ending` is
 * a value of the column `ending` of `calls`.
 *
 * In the name, recorded arguments replace the argument types. The result is the recorded result, or
 * "-" if none was recorded. It is "!" if an exception or a jump ended the call, and "?" if the exit
 * was lost. A recorded errno follows the result. Returns the errors of sj_sql_each. */
SJ_MUST_CHECK sj_status sj_function_line_make(const sj_function_values *values, int64_t call_id,
                                              const char *name, const char *ending,
                                              sj_function_line *line, sj_error *error);

#endif
