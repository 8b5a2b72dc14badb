/* coverage(sessions [, by]): the words that the table function accepts. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H
#define SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H

#include <stdbool.h>

/* True if coverage can be shown by this: module, namespace, class, function, mark, file or line. */
bool sj_coverage_is_kind(const char *by);

/* True for coverage of lines: by file or line. */
bool sj_coverage_is_of_lines(const char *by);

#endif
