/* coverage(sessions [, by]): the words that the table function takes. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H
#define SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H

#include <stdbool.h>

/* sj_coverage_is_kind returns whether coverage can be shown by this: module, namespace, class,
 * function, mark, file or line. */
bool sj_coverage_is_kind(const char *by);

/* sj_coverage_is_of_lines returns whether that is coverage of lines: by file or line. */
bool sj_coverage_is_of_lines(const char *by);

#endif
