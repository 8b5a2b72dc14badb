/* `sojourn report --coverage`: functions entered of those that are there. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H

#include "collector-server/cli/query_command.h"

typedef struct sj_report_coverage {
    const char *by;       /* "" or NULL: module */
    const char *sessions; /* a set; NULL: the session of the options, else the last */
    const char *page;     /* an HTML file; NULL: none */
} sj_report_coverage;

/* sj_report_coverage_run prints it, or writes the page. Returns an exit code. */
int sj_report_coverage_run(const sj_report_coverage *coverage, const sj_query_options *options);

#endif
