/* The words that coverage(sessions [, by]) accepts as `by`. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H
#define SJ_COLLECTOR_SERVER_QUERY_COVERAGE_TABLE_H

#include <stdbool.h>

/* True for "module", "namespace", "class", "function", "mark", "file" and "line". */
bool sj_coverage_is_kind(const char *by);

/* True for coverage of lines: "file" and "line". */
bool sj_coverage_is_of_lines(const char *by);

#endif
