/* A call as a line of function.txt: name with arguments, result. */
#ifndef SJ_COLLECTOR_EXPORT_FUNCTION_LINE_H
#define SJ_COLLECTOR_EXPORT_FUNCTION_LINE_H

#include "proto/base/error.h"
#include "proto/block/call_text.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Texts of one call; longer ones are cut. */
typedef struct sj_function_line {
    char name[SJ_CALL_TEXT_NAME];
    char result[SJ_CALL_TEXT_RESULT];
} sj_function_line;

/* What reads the values of a session's calls. */
typedef struct sj_function_values {
    sqlite3_stmt *select; /* NULL: the session has none */
    int64_t session_id;
} sj_function_values;

/* sj_function_values_open prepares; close it also when it failed. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_function_values_open(sqlite3 *database, int64_t session_id,
                                                sj_function_values *values, sj_error *error);
void sj_function_values_close(sj_function_values *values);

/* sj_function_line_make writes the texts of a call. `name` is the function's, NULL: unknown;
 * `ending` as in `calls`. The name has values in the place of types where they were recorded. The
 * result is the recorded one, "-" when none was recorded, "!" when an exception or a jump ended the
 * call, "?" when its end was lost; errno stands behind it where it was recorded.
 */
void sj_function_line_make(const sj_function_values *values, int64_t call_id, const char *name,
                           const char *ending, sj_function_line *line);

#endif
