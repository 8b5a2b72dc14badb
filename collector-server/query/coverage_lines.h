/* Rows of coverage(sessions, by) that are about lines of source files (the view source_lines). */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COVERAGE_LINES_H
#define SJ_COLLECTOR_SERVER_QUERY_COVERAGE_LINES_H

#include "collector-server/query/session_set.h"

/* A file or a line. Texts are borrowed for the call. */
typedef struct sj_lines_row {
    const char *name;
    int64_t lines;
    int64_t unknown; /* of which no session tells whether they were entered */
    int64_t entered;
    const char *missing; /* not entered, as "3, 7-9"; NULL: none, or a row is a line */
} sj_lines_row;

typedef sj_status (*sj_lines_row_sink)(void *context, const sj_lines_row *row);

/* sj_coverage_lines_read hands every source file of a set of sessions to `sink`, or every line of
 * it. SJ_EINVAL: the set is cut by marks, which lines are not; SJ_EIO, SJ_ENOMEM, or what the sink
 * returned. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_coverage_lines_read(sqlite3 *database, const sj_session_set *set,
                                               bool by_line, sj_lines_row_sink sink, void *context,
                                               sj_error *error);

#endif
