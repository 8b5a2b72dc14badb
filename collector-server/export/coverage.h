/* Reads the coverage of a session, for formats of coverage. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_COVERAGE_H
#define SJ_COLLECTOR_SERVER_EXPORT_COVERAGE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_covered_function {
    char *name; /* owned by the reader */
    int64_t line, count;
} sj_covered_function;

typedef struct sj_covered_line {
    int64_t line, count;
} sj_covered_line;

/* A source file: its watched functions whose lines are known, sorted by line, and its lines. If the
 * session recorded lines of the file, each of them has a count of 1 (entered) or 0. Else the lines
 * are those where functions begin, with the largest of their counts. */
typedef struct sj_covered_file {
    char *name; /* owned by the reader */
    sj_covered_function *functions;
    size_t function_count, function_capacity;
    sj_covered_line *lines;
    size_t line_count, line_capacity;
    size_t entered_functions, entered_lines;
} sj_covered_file;

/* Receives a file, which is valid only during the call. */
typedef void (*sj_coverage_receiver)(void *context, const sj_covered_file *file);

/* Passes the files of a session in the order of their names. Holds one file in memory. Fails with
 * SJ_ENOTFOUND if no watched function has a line, with SJ_EIO or SJ_ENOMEM. Blocks on the database.
 */
SJ_MUST_CHECK sj_status sj_coverage_read(sqlite3 *database, int64_t session_id,
                                         sj_coverage_receiver receive, void *context,
                                         sj_error *error);

#endif
