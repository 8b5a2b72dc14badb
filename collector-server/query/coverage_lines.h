/* The rows of coverage(sessions, by) for lines of source files, from the view source_lines. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COVERAGE_LINES_H
#define SJ_COLLECTOR_SERVER_QUERY_COVERAGE_LINES_H

#include "collector-server/query/session_set.h"

/* A source file or one of its lines. Texts are valid only during the call of the sink. */
typedef struct sj_lines_row {
    const char *name; /* FILE or FILE:LINE */
    int64_t lines;
    int64_t unknown; /* lines for which no session recorded whether they were entered */
    int64_t entered; /* lines that were entered */
    /* lines that were not entered, as "3, 7-9"; NULL: none, or the row is a line */
    const char *missing;
} sj_lines_row;

typedef sj_status (*sj_lines_row_sink)(void *context, const sj_lines_row *row);

/* Passes each source file of a set of sessions to `sink`, or each line if `by_line`. Fails with
 * SJ_EINVAL if the set is limited by marks, because lines have no times. Fails with SJ_EIO,
 * SJ_ENOMEM, or the sink's status. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_coverage_lines_read(sqlite3 *database, const sj_session_set *set,
                                               bool by_line, sj_lines_row_sink sink, void *context,
                                               sj_error *error);

#endif
